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

/** Places of all nodes, x and y in turns. */
export type Layout = Float32Array<ArrayBuffer>;

interface Node extends SimulationNodeDatum {
  readonly radius: number;
}

/** Least time between two messages (ms), about 30 a second. */
const MESSAGE_MS = 33;

addEventListener('message', ({ data }: MessageEvent<LayoutRequest>) => layOut(data));

function layOut({ radii, links }: LayoutRequest): void {
  const nodes: Node[] = radii.map((radius) => ({ radius }));
  const simulation = forceSimulation(nodes)
    .force('charge', forceManyBody().strength(-34).distanceMax(420))
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
  const step = () => {
    const until = performance.now() + MESSAGE_MS;
    do simulation.tick();
    while (performance.now() < until && simulation.alpha() >= simulation.alphaMin());
    const places: Layout = new Float32Array(nodes.length * 2);
    nodes.forEach(({ x = 0, y = 0 }, at) => places.set([x, y], at * 2));
    postMessage(places, { transfer: [places.buffer] });
    if (simulation.alpha() >= simulation.alphaMin()) setTimeout(step);
  };
  step();
}
