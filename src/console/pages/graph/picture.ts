/** A graph on a canvas, which can be moved, zoomed and clicked. */
import LayoutWorker from './layout-worker.ts?worker';
import type { Layout, LayoutRequest } from './layout-worker.ts';

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
export interface PictureLink {
  readonly source: number;
  readonly target: number;
  readonly weight: number;
}

export interface Picture {
  /** Shows what was there at a time, Unix ms. */
  showUntil(at: number): void;
  /** Reads the colours again, after the theme has changed. */
  repaint(): void;
  close(): void;
}

interface View {
  x: number;
  y: number;
  scale: number;
}

/** Nodes up to which names are labelled at any scale. */
const FEW_NODES = 150;
/** Scale from which everything is labelled. */
const LABEL_SCALE = 2.4;

/**
 * Draws a graph.
 * @param onOpen called with the address of a node that was clicked
 */
export function drawGraph(
  canvas: HTMLCanvasElement,
  { nodes, links }: { readonly nodes: readonly PictureNode[]; readonly links: readonly PictureLink[] },
  onOpen: (href: string) => void,
): Picture {
  const context = canvas.getContext('2d')!;
  const view: View = { x: 0, y: 0, scale: firstScale(nodes.length) };
  let places: Layout = new Float32Array(nodes.length * 2);
  let until = Infinity;
  let frame = 0;
  const paint = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      fit(canvas);
      paintFrame({ context, canvas, view, nodes, links, places, until });
    });
  };
  const worker = new LayoutWorker();
  worker.addEventListener('message', ({ data }: MessageEvent<Layout>) => {
    places = data;
    paint();
  });
  worker.postMessage({ radii: nodes.map(({ radius }) => radius), links } satisfies LayoutRequest);
  const observer = new ResizeObserver(paint);
  observer.observe(canvas);
  const nodeAt = (x: number, y: number) => findNode(toGraph(canvas, view, x, y), { nodes, places, until });
  const leave = listen(canvas, view, { paint, open: (x, y) => openAt(nodeAt(x, y), onOpen), nodeAt });
  return {
    showUntil(at) {
      until = at;
      paint();
    },
    repaint: paint,
    close() {
      worker.terminate();
      observer.disconnect();
      cancelAnimationFrame(frame);
      leave();
    },
  };
}

function openAt(node: PictureNode | undefined, onOpen: (href: string) => void): void {
  if (node !== undefined) onOpen(node.href);
}

function fit(canvas: HTMLCanvasElement): void {
  const width = Math.round(canvas.clientWidth * devicePixelRatio);
  const height = Math.round(canvas.clientHeight * devicePixelRatio);
  if (canvas.width === width && canvas.height === height) return;
  canvas.width = width;
  canvas.height = height;
}

interface Frame {
  readonly context: CanvasRenderingContext2D;
  readonly canvas: HTMLCanvasElement;
  readonly view: View;
  readonly nodes: readonly PictureNode[];
  readonly links: readonly PictureLink[];
  readonly places: Layout;
  readonly until: number;
}

function paintFrame(frame: Frame): void {
  const { context, canvas, view } = frame;
  const colours = getComputedStyle(canvas);
  const colourOf = (name: string) => colours.getPropertyValue(`--paint-${name}`);
  const ratio = devicePixelRatio * view.scale;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.setTransform(ratio, 0, 0, ratio, canvas.width / 2 + view.x * ratio, canvas.height / 2 + view.y * ratio);
  paintLinks(frame, colourOf('line'));
  paintNodes(frame, colourOf);
  if (view.scale >= LABEL_SCALE || frame.nodes.length <= FEW_NODES) paintLabels(frame, colourOf('ink'));
}

/** Weights up to which links are drawn with one width, in one path: thousands of paths would take far longer. */
const WEIGHTS = [0.25, 0.5, 0.75, 1];

function paintLinks({ context, nodes, links, places, until }: Frame, colour: string): void {
  context.strokeStyle = colour;
  context.globalAlpha = 0.55;
  for (const [at, most] of WEIGHTS.entries()) {
    const least = WEIGHTS[at - 1] ?? -Infinity;
    context.lineWidth = 0.4 + most * 1.4;
    context.beginPath();
    for (const { source, target, weight } of links) {
      if (weight <= least || weight > most || nodes[source]!.at > until || nodes[target]!.at > until) continue;
      context.moveTo(places[source * 2]!, places[source * 2 + 1]!);
      context.lineTo(places[target * 2]!, places[target * 2 + 1]!);
    }
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** Draws the nodes colour by colour, each in one path. */
function paintNodes({ context, nodes, places, until }: Frame, colourOf: (name: string) => string): void {
  for (const colour of new Set(nodes.map((node) => node.colour))) {
    context.fillStyle = colourOf(colour);
    context.beginPath();
    nodes.forEach((node, at) => {
      if (node.colour !== colour || node.at > until) return;
      const [x, y] = [places[at * 2]!, places[at * 2 + 1]!];
      if (node.isName) context.rect(x - node.radius, y - node.radius, node.radius * 2, node.radius * 2);
      else {
        context.moveTo(x + node.radius, y);
        context.arc(x, y, node.radius, 0, 2 * Math.PI);
      }
    });
    context.fill();
  }
}

/** Writes the labels: of names, and of memories as well where the picture is near enough. */
function paintLabels({ context, view, nodes, places, until }: Frame, colour: string): void {
  const labelsAll = view.scale >= LABEL_SCALE;
  context.fillStyle = colour;
  context.font = `${11 / Math.max(1, view.scale * 0.8)}px Inter, system-ui, sans-serif`;
  context.textAlign = 'center';
  nodes.forEach(({ label, radius, isName, at: since }, at) => {
    if (since <= until && (isName || labelsAll))
      context.fillText(label.slice(0, 28), places[at * 2]!, places[at * 2 + 1]! + radius + 12 / view.scale);
  });
}

/** Scale at which a graph of this many nodes about fills the canvas. */
function firstScale(nodes: number): number {
  return Math.min(1.7, Math.max(0.25, 14 / Math.sqrt(nodes)));
}

function toGraph(canvas: HTMLCanvasElement, view: View, x: number, y: number): readonly [number, number] {
  return [(x - canvas.clientWidth / 2) / view.scale - view.x, (y - canvas.clientHeight / 2) / view.scale - view.y];
}

function findNode(
  [x, y]: readonly [number, number],
  { nodes, places, until }: Pick<Frame, 'nodes' | 'places' | 'until'>,
): PictureNode | undefined {
  return nodes.findLast(
    ({ radius, at }, index) =>
      at <= until && Math.hypot(places[index * 2]! - x, places[index * 2 + 1]! - y) <= radius + 3,
  );
}

interface Gestures {
  readonly paint: () => void;
  readonly open: (x: number, y: number) => void;
  readonly nodeAt: (x: number, y: number) => PictureNode | undefined;
}

/** Moves by dragging and arrow keys, zooms by the wheel and + and −. @returns a function that ends it */
function listen(canvas: HTMLCanvasElement, view: View, { paint, open, nodeAt }: Gestures): () => void {
  const stop = new AbortController();
  const on = <Name extends keyof HTMLElementEventMap>(name: Name, then: (event: HTMLElementEventMap[Name]) => void) =>
    canvas.addEventListener(name, then, { signal: stop.signal, passive: false });
  let from: { x: number; y: number; moved: number } | undefined;
  const zoom = (factor: number) => {
    view.scale = Math.min(8, Math.max(0.15, view.scale * factor));
    paint();
  };
  const move = (dx: number, dy: number) => {
    view.x += dx / view.scale;
    view.y += dy / view.scale;
    paint();
  };
  on('pointerdown', (event) => {
    from = { x: event.offsetX, y: event.offsetY, moved: 0 };
    canvas.setPointerCapture(event.pointerId);
  });
  on('pointermove', (event) => {
    const { offsetX: x, offsetY: y } = event;
    if (from === undefined) return void (canvas.title = nodeAt(x, y)?.label ?? '');
    move(x - from.x, y - from.y);
    from = { x, y, moved: from.moved + Math.hypot(x - from.x, y - from.y) };
  });
  on('pointerup', ({ offsetX: x, offsetY: y }) => {
    if (from !== undefined && from.moved < 4) open(x, y);
    from = undefined;
  });
  on('wheel', (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400));
  });
  on('keydown', ({ key }) => {
    if (key === '+' || key === '=') zoom(1.25);
    if (key === '-') zoom(0.8);
    const steps: Readonly<Record<string, readonly [number, number]>> = {
      ArrowLeft: [40, 0],
      ArrowRight: [-40, 0],
      ArrowUp: [0, 40],
      ArrowDown: [0, -40],
    };
    const step = steps[key];
    if (step !== undefined) move(...step);
  });
  return () => stop.abort();
}
