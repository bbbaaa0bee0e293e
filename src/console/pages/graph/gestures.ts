/** Moves and zooms a picture by mouse, finger and keyboard. */
import type { PictureNode, Scene } from './scene.ts';

interface Gestures {
  /** The visible part of the graph, which gestures change in place. */
  readonly view: Scene['view'];
  readonly onMove: () => void;
  readonly onOpen: (node: PictureNode) => void;
  /** Finds the node at a point, given in units of the graph. */
  readonly nodeAt: (x: number, y: number) => PictureNode | undefined;
}

/** Movement of the pointer below which it counts as a click (px). */
const CLICK_PX = 4;
/** Movement of the view for each arrow key (px). */
const STEPS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [40, 0],
  ArrowRight: [-40, 0],
  ArrowUp: [0, 40],
  ArrowDown: [0, -40],
};
const LEAST_SCALE = 0.15;
const MAX_SCALE = 8;

/**
 * Moves the view by dragging and arrow keys, and zooms it by the wheel, two fingers, + and −. A click calls `onOpen`
 * with the node at that point.
 * @returns a function that stops listening
 */
export function listen(canvas: HTMLCanvasElement, { view, onMove, onOpen, nodeAt }: Gestures): () => void {
  const stop = new AbortController();
  const on = <Name extends keyof HTMLElementEventMap>(name: Name, then: (event: HTMLElementEventMap[Name]) => void) =>
    canvas.addEventListener(name, then, { signal: stop.signal, passive: false });
  let from: { x: number; y: number; moved: number } | undefined;
  const fingers = new Map<number, { readonly x: number; readonly y: number }>();
  const nodeUnder = (x: number, y: number) =>
    nodeAt((x - canvas.clientWidth / 2) / view.scale - view.x, (y - canvas.clientHeight / 2) / view.scale - view.y);
  const zoom = (factor: number) => {
    view.scale = Math.min(MAX_SCALE, Math.max(LEAST_SCALE, view.scale * factor));
    onMove();
  };
  const move = (dx: number, dy: number) => {
    view.x += dx / view.scale;
    view.y += dy / view.scale;
    onMove();
  };
  on('pointerdown', (event) => {
    fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    // With a second finger, the movement neither drags the view nor counts as a click.
    from = fingers.size > 1 ? undefined : { x: event.offsetX, y: event.offsetY, moved: 0 };
    canvas.setPointerCapture(event.pointerId);
  });
  on('pointermove', ({ pointerId, offsetX: x, offsetY: y }) => {
    if (fingers.size === 2 && fingers.has(pointerId)) {
      const before = distance(fingers);
      fingers.set(pointerId, { x, y });
      return zoom(distance(fingers) / before);
    }
    if (from === undefined) return void (canvas.title = nodeUnder(x, y)?.label ?? '');
    move(x - from.x, y - from.y);
    from = { x, y, moved: from.moved + Math.hypot(x - from.x, y - from.y) };
  });
  on('pointercancel', ({ pointerId }) => fingers.delete(pointerId));
  on('pointerup', ({ pointerId, offsetX: x, offsetY: y }) => {
    fingers.delete(pointerId);
    const node = from !== undefined && from.moved < CLICK_PX ? nodeUnder(x, y) : undefined;
    from = undefined;
    if (node !== undefined) onOpen(node);
  });
  on('wheel', (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400));
  });
  on('keydown', ({ key }) => {
    if (key === '+' || key === '=') zoom(1.25);
    if (key === '-') zoom(0.8);
    const step = STEPS[key];
    if (step !== undefined) move(...step);
  });
  return () => stop.abort();
}

/** Returns the distance between two fingers (px), at least 1. */
function distance(fingers: ReadonlyMap<number, { readonly x: number; readonly y: number }>): number {
  const [a, b] = [...fingers.values()];
  return Math.max(1, Math.hypot(a!.x - b!.x, a!.y - b!.y));
}
