/** Draws a graph on a canvas. Nodes and links outside of the visible part are not drawn. */
import { groupsByColour, groupsOf, type Group, type PictureNode, type Scene } from './scene.ts';

/**
 * Greatest number of nodes of a picture that has labels at any scale. A picture with more nodes has labels only from
 * the scale `LABEL_SCALE` on.
 */
const FEW_NODES = 150;
/** Scale (CSS pixels for one unit of the graph) from which on memories are labelled, not only names. */
const LABEL_SCALE = 2.4;
/** Greatest number of labels in a frame: text is the slowest part of a picture, and more of it cannot be read. */
const MAX_LABELS = 150;
/**
 * Upper bounds of the weights of links that are drawn with the same width. All links of one width are one path, since
 * thousands of paths take far longer.
 */
const WEIGHTS = [0.25, 0.5, 0.75, 1] as const;
/**
 * Greatest number of links with which lines become wider with the scale. With more, none is wider than one pixel of the
 * screen: filling the outlines of thousands of wide lines takes ten times as long.
 */
const FEW_LINKS = 800;
/**
 * Greatest number of screen pixels that are drawn for one CSS pixel: a sharper picture takes more time and looks the
 * same.
 */
const MAX_RATIO = 2;

/** Draws a scene on its canvas, once for each call of `paint`. */
export interface Painter {
  paint(): void;
  /** Adopts the size of the canvas. Call it after the size has changed. */
  fit(): void;
  /** Reads the colours of the theme again. Call it after the theme has changed. */
  readColours(): void;
}

/**
 * Makes the painter of a scene. All nodes of one colour, and all links of one width, are drawn as one path, since each
 * path takes time of its own.
 */
export function createPainter(canvas: HTMLCanvasElement, scene: Scene): Painter {
  // Without transparency the browser need not mix the picture with the page below.
  const context = canvas.getContext('2d', { alpha: false })!;
  const colours = groupsByColour(scene.nodes);
  const widths = groupsOf(scene.links, ({ weight }) => WEIGHTS.find((most) => weight <= most) ?? 1);
  const labelled = orderOfLabels(scene.nodes);
  let colourOf: ReadonlyMap<string, string>;
  let ratio = 1;
  const painter: Painter = {
    fit() {
      ratio = Math.min(MAX_RATIO, devicePixelRatio);
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

/** Bounds of the visible part of the picture, in units of the graph. */
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

/** Writes the labels of visible nodes: names always, memories only from the scale 2.4 on; at most 150 in all. */
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
    if (++written === MAX_LABELS) return;
  }
}

/**
 * Returns the indexes of nodes in the order in which they are labelled: names first, then memories with the largest
 * circles first.
 */
function orderOfLabels(nodes: readonly PictureNode[]): number[] {
  const rankOf = ({ isName, radius }: PictureNode) => (isName ? Infinity : radius);
  return [...nodes.keys()].sort((a, b) => rankOf(nodes[b]!) - rankOf(nodes[a]!));
}
