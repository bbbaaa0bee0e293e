/** A picture of a graph on a canvas, which can be moved, zoomed and clicked. */
import LayoutWorker from './layout-worker.ts?worker';
import type { Layout, LayoutRequest } from './layout-worker.ts';
import { listen } from './gestures.ts';
import { createPainter } from './paint.ts';
import { findNode, orderOfPainting, type PictureLink, type PictureNode, type Scene } from './scene.ts';

/** A graph that is drawn on a canvas and laid out by a worker. `close` ends both. */
export interface Picture {
  /** Shows the nodes whose time is not after `at` (Unix ms). */
  showUntil(at: number): void;
  /** Reads the colours again, after the theme has changed. */
  repaint(): void;
  close(): void;
}

/** Time in which a node moves about two thirds of the way to its position in the layout (ms). */
const FOLLOW_MS = 60;
/** Distance below which a node counts as arrived, in units of the graph. */
const ARRIVED = 0.3;

/**
 * Draws a graph on a canvas, while a worker computes its layout. Frames are drawn only while something moves.
 * @param onOpen called with the address of a node that was clicked
 */
export function drawGraph(
  canvas: HTMLCanvasElement,
  { nodes, links }: { readonly nodes: readonly PictureNode[]; readonly links: readonly PictureLink[] },
  onOpen: (href: string) => void,
): Picture {
  const scene: Scene = {
    nodes,
    links,
    places: new Float32Array(nodes.length * 2),
    view: { x: 0, y: 0, scale: firstScale(nodes.length, canvas) },
    until: Infinity,
  };
  const painter = createPainter(canvas, scene);
  const order = orderOfPainting(nodes);
  let goal: Layout | undefined;
  let frame = 0;
  let before = 0;
  const paint = () => void (frame ||= requestAnimationFrame(draw));
  const draw = (now: number) => {
    frame = 0;
    const isMoving = goal !== undefined && follow(scene.places, goal.places, 1 - Math.exp((before - now) / FOLLOW_MS));
    before = now;
    painter.paint();
    if (isMoving) paint();
    else if (goal?.isSettled === true) canvas.dataset.settled = '';
  };
  const worker = new LayoutWorker();
  worker.addEventListener('message', ({ data }: MessageEvent<Layout>) => {
    if (goal === undefined) scene.places.set(data.places);
    goal = data;
    paint();
  });
  worker.postMessage({ radii: nodes.map(({ radius }) => radius), links } satisfies LayoutRequest);
  const observer = new ResizeObserver(() => {
    painter.fit();
    paint();
  });
  observer.observe(canvas);
  const repaint = () => {
    painter.readColours();
    paint();
  };
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  scheme.addEventListener('change', repaint);
  const leave = listen(canvas, {
    view: scene.view,
    onMove: paint,
    onOpen: (node) => onOpen(node.href),
    nodeAt: (x, y) => findNode(scene, order, x, y),
  });
  return {
    showUntil(at) {
      scene.until = at;
      paint();
    },
    repaint,
    close() {
      worker.terminate();
      observer.disconnect();
      scheme.removeEventListener('change', repaint);
      cancelAnimationFrame(frame);
      leave();
    },
  };
}

/**
 * Moves all positions towards `goal` by a share (0 to 1) of their distance from it.
 * @returns true if a node was further than `ARRIVED` away from its goal before
 */
function follow(places: Float32Array<ArrayBuffer>, goal: Float32Array<ArrayBuffer>, share: number): boolean {
  let furthest = 0;
  for (let at = 0; at < places.length; at++) {
    const way = goal[at]! - places[at]!;
    places[at] = places[at]! + way * share;
    furthest = Math.max(furthest, Math.abs(way));
  }
  return furthest > ARRIVED;
}

/** Smallest canvas on which a graph is drawn at its full scale (px). On a smaller canvas the graph is drawn smaller. */
const ROOMY = { width: 760, height: 520 };

/** Returns the scale at which a graph of this many nodes about fills the canvas. */
function firstScale(nodes: number, { clientWidth, clientHeight }: HTMLCanvasElement): number {
  const room = Math.min(1, clientWidth / ROOMY.width, clientHeight / ROOMY.height);
  return room * Math.min(1.7, Math.max(0.25, 14 / Math.sqrt(nodes)));
}
