/** Lays a graph out, in a thread of its own, so that moving and zooming stay smooth meanwhile. */
import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationNodeDatum,
} from 'd3-force';

/** A graph to lay out. Links hold places in `radii`. */
export interface LayoutRequest {
  readonly radii: readonly number[];
  readonly links: readonly { readonly source: number; readonly target: number; readonly weight: number }[];
}

/** Places of all nodes, x and y in turns, and whether they are the last ones. */
export interface Layout {
  readonly places: Float32Array<ArrayBuffer>;
  readonly isSettled: boolean;
}

interface Node extends SimulationNodeDatum {
  readonly radius: number;
}

/** Steps after which a layout is settled: from about here on no node moves by a pixel. */
const STEPS = 160;
/** Heat at the end; the forces of d3 begin with 1. */
const LEAST_HEAT = 0.004;
/** Least time between two messages (ms): the picture moves evenly from one to the next. */
const MESSAGE_MS = 50;

addEventListener('message', ({ data }: MessageEvent<LayoutRequest>) => layOut(data));

function layOut({ radii, links }: LayoutRequest): void {
  const nodes: Node[] = radii.map((radius) => ({ radius }));
  const simulation = forceSimulation(nodes)
    .alphaMin(LEAST_HEAT)
    .alphaDecay(1 - LEAST_HEAT ** (1 / STEPS))
    .force('charge', forceManyBody().strength(-34).distanceMax(420).theta(1.1))
    .force(
      'collide',
      forceCollide<Node>().radius(({ radius }) => radius + 2),
    )
    .force('x', forceX().strength(0.045))
    .force('y', forceY().strength(0.06))
    .force(
      'links',
      forceLink(links.map((link) => ({ ...link })))
        .distance(46)
        .strength(({ weight }) => 0.1 + weight * 0.4),
    )
    .stop();
  const isSettled = () => simulation.alpha() < simulation.alphaMin();
  const step = () => {
    const until = performance.now() + MESSAGE_MS;
    do simulation.tick();
    while (performance.now() < until && !isSettled());
    const places = new Float32Array(nodes.length * 2);
    nodes.forEach(({ x = 0, y = 0 }, at) => places.set([x, y], at * 2));
    postMessage({ places, isSettled: isSettled() } satisfies Layout, { transfer: [places.buffer] });
    if (!isSettled()) setTimeout(step);
  };
  step();
}
