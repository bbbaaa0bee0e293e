/** Computes the layout of a graph in a worker thread, so that moving and zooming stay smooth meanwhile. */
import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationNodeDatum,
} from 'd3-force';

/**
 * A graph to lay out: the radii of its nodes in units of the graph, and its links. `source` and `target` are indexes in
 * `radii`; `weight` is 0 to 1.
 */
export interface LayoutRequest {
  readonly radii: readonly number[];
  readonly links: readonly { readonly source: number; readonly target: number; readonly weight: number }[];
}

/** Positions of all nodes, x and y alternating, in units of the graph, and whether they are final. */
export interface Layout {
  readonly places: Float32Array<ArrayBuffer>;
  readonly isSettled: boolean;
}

interface Node extends SimulationNodeDatum {
  readonly radius: number;
}

/** Number of steps after which the layout ends: from about this step on, no node moves by a pixel. */
const STEPS = 160;
/** Heat (d3's alpha) at which the layout ends. It begins at 1, and nodes move in proportion to it. */
const LEAST_HEAT = 0.004;
/** Shortest time between two messages (ms). The picture moves smoothly from one to the next. */
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
