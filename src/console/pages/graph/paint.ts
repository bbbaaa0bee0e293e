/** Draws a graph on a canvas. Whatever is not in sight is not drawn. */

/** A memory or a name in the picture of a graph, without its place. */
export interface PictureNode {
  readonly href: string;
  readonly label: string;
  /** Name of the colour among the tokens of console.css. */
  readonly colour: string;
  readonly radius: number;
  /** Unix ms; a node appears once the time of the picture has reached it. */
  readonly at: number;
  readonly isName: boolean;
}
/** A line of the picture between two nodes; `source` and `target` are their places in `Scene.nodes`. */
export interface PictureLink {
  readonly source: number;
  readonly target: number;
  /** 0 to 1. */
  readonly weight: number;
}

/** What is drawn, and from where it is looked at. */
export interface Scene {
  readonly nodes: readonly PictureNode[];
  readonly links: readonly PictureLink[];
  /** Places of all nodes, x and y in turns. */
  readonly places: Float32Array<ArrayBuffer>;
  /** Point of the graph in the middle of the canvas, and pixels of the page for a unit of the graph. */
  readonly view: { x: number; y: number; scale: number };
  /** Nodes of a later time are not there yet. Unix ms. */
  until: number;
}

/** Nodes up to which names are labelled at any scale. */
const FEW_NODES = 150;
/** Scale from which everything in sight is labelled. */
const LABEL_SCALE = 2.4;
/** Most labels of a frame: text is the slowest part of a picture, and more of it cannot be read. */
const MOST_LABELS = 150;
/** Weights up to which links are drawn with one width, in one path: thousands of paths would take far longer. */
const WEIGHTS = [0.25, 0.5, 0.75, 1] as const;
/**
 * Links up to which lines grow as one comes nearer. Of more, none is wider than a pixel of the screen: the outlines of
 * thousands of wide lines in one path take ten times as long to fill as the same lines a pixel wide.
 */
const FEW_LINKS = 800;
/** Greatest number of pixels of the screen for a pixel of the page: sharper than this costs time and is not seen. */
const MOST_RATIO = 2;

interface Group<Kind> {
  readonly kind: Kind;
  /** Places in the list of nodes or links. */
  readonly members: readonly number[];
}

/** Draws a scene on its canvas, each time that `paint` is called. */
export interface Painter {
  paint(): void;
  /** Takes over the size of the canvas, after it has changed. */
  fit(): void;
  /** Reads the colours of the theme again. */
  readColours(): void;
}

/** Makes what draws a scene. Nodes of one colour, and links of one width, are one path: each path costs anew. */
export function createPainter(canvas: HTMLCanvasElement, scene: Scene): Painter {
  // Without transparency the browser need not mix the picture with the page below.
  const context = canvas.getContext('2d', { alpha: false })!;
  const colours = groupsOf(scene.nodes, ({ colour }) => colour);
  const widths = groupsOf(scene.links, ({ weight }) => WEIGHTS.find((most) => weight <= most) ?? 1);
  const labelled = orderOfLabels(scene.nodes);
  let colourOf: ReadonlyMap<string, string>;
  let ratio = 1;
  const painter: Painter = {
    fit() {
      ratio = Math.min(MOST_RATIO, devicePixelRatio);
      canvas.width = Math.round(canvas.clientWidth * ratio);
      canvas.height = Math.round(canvas.clientHeight * ratio);
    },
    readColours() {
      const style = getComputedStyle(canvas);
      const names = [...colours.map(({ kind }) => kind), 'line', 'ink', 'surface'];
      colourOf = new Map(names.map((name) => [name, style.getPropertyValue(`--paint-${name}`)]));
    },
    paint() {
      const { view } = scene;
      const scale = ratio * view.scale;
      const sight = sightOf(canvas, view, scale);
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.fillStyle = colourOf.get('surface')!;
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.setTransform(scale, 0, 0, scale, canvas.width / 2 + view.x * scale, canvas.height / 2 + view.y * scale);
      context.strokeStyle = colourOf.get('line')!;
      context.globalAlpha = 0.55;
      const widest = scene.links.length > FEW_LINKS ? 1 / scale : Infinity;
      for (const group of widths) paintLinks(context, scene, sight, { ...group, widest });
      context.globalAlpha = 1;
      for (const group of colours) {
        context.fillStyle = colourOf.get(group.kind)!;
        paintNodes(context, scene, sight, group);
      }
      if (view.scale < LABEL_SCALE && scene.nodes.length > FEW_NODES) return;
      context.fillStyle = colourOf.get('ink')!;
      paintLabels(context, scene, sight, labelled);
    },
  };
  painter.fit();
  painter.readColours();
  return painter;
}

/** The part of the graph that the canvas shows, in its units. */
interface Sight {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

function sightOf({ width, height }: HTMLCanvasElement, { x, y }: Scene['view'], scale: number): Sight {
  const [halfX, halfY] = [width / 2 / scale, height / 2 / scale];
  return { left: -x - halfX, right: -x + halfX, top: -y - halfY, bottom: -y + halfY };
}

function paintLinks(
  context: CanvasRenderingContext2D,
  { nodes, links, places, until }: Scene,
  { left, right, top, bottom }: Sight,
  { kind: most, members, widest }: Group<number> & { readonly widest: number },
): void {
  context.lineWidth = Math.min(widest, 0.4 + most * 1.4);
  context.beginPath();
  for (const member of members) {
    const { source, target } = links[member]!;
    if (nodes[source]!.at > until || nodes[target]!.at > until) continue;
    const [x1, y1] = [places[source * 2]!, places[source * 2 + 1]!];
    const [x2, y2] = [places[target * 2]!, places[target * 2 + 1]!];
    const isBeside = (x1 < left && x2 < left) || (x1 > right && x2 > right);
    if (isBeside || (y1 < top && y2 < top) || (y1 > bottom && y2 > bottom)) continue;
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
  }
  context.stroke();
}

function paintNodes(
  context: CanvasRenderingContext2D,
  { nodes, places, until }: Scene,
  { left, right, top, bottom }: Sight,
  { members }: Group<string>,
): void {
  context.beginPath();
  for (const member of members) {
    const { radius, at, isName } = nodes[member]!;
    const [x, y] = [places[member * 2]!, places[member * 2 + 1]!];
    if (at > until || x + radius < left || x - radius > right || y + radius < top || y - radius > bottom) continue;
    if (isName) context.rect(x - radius, y - radius, radius * 2, radius * 2);
    else {
      context.moveTo(x + radius, y);
      context.arc(x, y, radius, 0, 2 * Math.PI);
    }
  }
  context.fill();
}

/** Writes the labels of names, and of memories as well where the picture is near enough. */
function paintLabels(
  context: CanvasRenderingContext2D,
  { nodes, places, until, view: { scale } }: Scene,
  { left, right, top, bottom }: Sight,
  order: readonly number[],
): void {
  context.font = `${11 / Math.max(1, scale * 0.8)}px Inter, system-ui, sans-serif`;
  context.textAlign = 'center';
  let written = 0;
  for (const member of order) {
    const { label, radius, isName, at } = nodes[member]!;
    const [x, y] = [places[member * 2]!, places[member * 2 + 1]!];
    if (at > until || x < left || x > right || y < top || y > bottom || (!isName && scale < LABEL_SCALE)) continue;
    context.fillText(label.slice(0, 28), x, y + radius + 12 / scale);
    if (++written === MOST_LABELS) return;
  }
}

function groupsOf<Item, Kind>(items: readonly Item[], kindOf: (item: Item) => Kind): readonly Group<Kind>[] {
  const groups = Map.groupBy(items.keys(), (at) => kindOf(items[at]!));
  return [...groups].map(([kind, members]) => ({ kind, members }));
}

/** Names come first, then the memories with the largest circles. */
function orderOfLabels(nodes: readonly PictureNode[]): number[] {
  const rankOf = ({ isName, radius }: PictureNode) => (isName ? Infinity : radius);
  return [...nodes.keys()].sort((a, b) => rankOf(nodes[b]!) - rankOf(nodes[a]!));
}
