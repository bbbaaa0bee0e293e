/** What the picture of a graph shows, in which order its nodes are painted, and which of them is at a point. */

/** A node of the picture, which is a memory or a name, without its position. */
export interface PictureNode {
  readonly href: string;
  readonly label: string;
  /** Name of its colour in console.css. */
  readonly colour: string;
  /** Radius of the circle of a memory, or half the side of the square of a name, in units of the graph. */
  readonly radius: number;
  /**
   * Time of the memory, or of the first memory that mentions the name, Unix ms. The node is drawn if it is not after
   * `Scene.until`.
   */
  readonly at: number;
  readonly isName: boolean;
}
/** A link of the picture. `source` and `target` are the indexes of its nodes in `Scene.nodes`. */
export interface PictureLink {
  readonly source: number;
  readonly target: number;
  /** Weight of the link, 0 to 1. */
  readonly weight: number;
}

/** The content of a picture, and the part of it that is visible. */
export interface Scene {
  readonly nodes: readonly PictureNode[];
  readonly links: readonly PictureLink[];
  /** Positions of all nodes, x and y alternating, in units of the graph. */
  readonly places: Float32Array<ArrayBuffer>;
  /**
   * Shift of the graph's origin from the middle of the canvas, in units of the graph, and the number of CSS pixels for
   * one unit.
   */
  readonly view: { x: number; y: number; scale: number };
  /** Nodes whose time (`PictureNode.at`) is after this are not drawn, Unix ms. */
  until: number;
}

/** Nodes or links of one kind. */
export interface Group<Kind> {
  readonly kind: Kind;
  /** Indexes of the group's members in the list of nodes or links. */
  readonly members: readonly number[];
}

/** Groups the indexes of nodes by their colour. The groups are painted in this order. */
export const groupsByColour = (nodes: readonly PictureNode[]) => groupsOf(nodes, ({ colour }) => colour);

/** Returns the indexes of nodes in the order in which they are painted: one colour after the other. */
export function orderOfPainting(nodes: readonly PictureNode[]): number[] {
  return groupsByColour(nodes).flatMap(({ members }) => members);
}

/** Groups the indexes of items by their kind, in the order in which the kinds occur first. */
export function groupsOf<Item, Kind>(items: readonly Item[], kindOf: (item: Item) => Kind): readonly Group<Kind>[] {
  const groups = Map.groupBy(items.keys(), (at) => kindOf(items[at]!));
  return [...groups].map(([kind, members]) => ({ kind, members }));
}

/**
 * Finds the node whose shape contains a point of the graph, or is at most 3 units away from it; undefined if there is
 * none. Of several it is the one that is painted on top of the others. All nodes are compared: 2,000 distances take
 * less time than keeping an index of moving nodes.
 * @param order indexes of the nodes in the order in which they are painted
 */
export function findNode(
  { nodes, places, until }: Scene,
  order: readonly number[],
  x: number,
  y: number,
): PictureNode | undefined {
  const found = order.findLast((index) => {
    const { radius, at } = nodes[index]!;
    return at <= until && Math.hypot(places[index * 2]! - x, places[index * 2 + 1]! - y) <= radius + 3;
  });
  return found === undefined ? undefined : nodes[found];
}
