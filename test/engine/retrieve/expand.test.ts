import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Activated, type Spreading, spread, startSpreading } from '../../../src/engine/retrieve/expand.ts';
import type { Step } from '../../../src/engine/store/link-steps.ts';

type Link = readonly [one: number, other: number, weight: number];

/** The steps that the store would give for these origins: every link leads both ways. */
function stepsOf(links: readonly Link[], origins: readonly Activated[]): Step[] {
  return origins.flatMap(({ memoryNo }) =>
    links.flatMap(([one, other, weight]): Step[] => {
      if (one === memoryNo) return [{ origin: one, reached: other, type: 'waypoint', weight }];
      if (other === memoryNo) return [{ origin: other, reached: one, type: 'waypoint', weight }];
      return [];
    }),
  );
}

function spreadOver(
  links: readonly Link[],
  hits: readonly Activated[],
  { hops = 2, decayPerHop = 0.5 }: { hops?: number; decayPerHop?: number } = {},
): Spreading {
  const spreading = startSpreading(hits);
  for (let hop = 0; hop < hops; hop += 1) spread(spreading, stepsOf(links, spreading.front), decayPerHop);
  return spreading;
}

test('activation falls by weight and decay once at each hop', () => {
  // OpenMem's example: A at .80 reaches B over .6 with .24, and from there C over .5 with .06.
  const { arrivals } = spreadOver(
    [
      [1, 2, 0.6],
      [2, 3, 0.5],
    ],
    [{ memoryNo: 1, activation: 0.8 }],
  );
  expect(arrivals.get(2)).toMatchObject({ from: 1, weight: 0.6, hops: 1, path: [1] });
  expect(arrivals.get(2)!.activation).toBeCloseTo(0.24, 12);
  expect(arrivals.get(3)).toMatchObject({ from: 2, weight: 0.5, hops: 2, path: [1, 2] });
  expect(arrivals.get(3)!.activation).toBeCloseTo(0.06, 12);
});

test('of several arrivals the strongest counts, not their sum', () => {
  const { arrivals } = spreadOver(
    [
      [1, 3, 0.4],
      [2, 3, 0.6],
    ],
    [
      { memoryNo: 1, activation: 1 },
      { memoryNo: 2, activation: 0.9 },
    ],
  );
  expect(arrivals.get(3)).toMatchObject({ from: 2, activation: 0.27 });
});

test('a tie goes to the lower number, in whatever order the links come', () => {
  const origins = [1, 2].map((memoryNo) => ({ memoryNo, activation: 1 }));
  const links: Link[] = [
    [1, 3, 0.5],
    [2, 3, 0.5],
  ];
  for (const each of [links, links.toReversed()]) expect(spreadOver(each, origins).arrivals.get(3)!.from).toBe(1);
});

test('activation does not come back to where it came from', () => {
  // With neither weight nor decay to weaken it, it would come back in full.
  const { arrivals } = spreadOver([[1, 2, 1]], [{ memoryNo: 1, activation: 1 }], { hops: 4, decayPerHop: 1 });
  expect([...arrivals.keys()]).toEqual([2]);
  expect(arrivals.get(2)).toMatchObject({ hops: 1, path: [1] });
});

test('a direct hit is lifted only by a link that brings more than it has', () => {
  const hits = [
    { memoryNo: 1, activation: 1 },
    { memoryNo: 2, activation: 0.9 },
    { memoryNo: 3, activation: 0.1 },
  ];
  const { arrivals } = spreadOver(
    [
      [1, 2, 1],
      [1, 3, 0.8],
      [3, 4, 1],
    ],
    hits,
  );
  expect(arrivals.has(2)).toBe(false);
  expect(arrivals.get(3)).toMatchObject({ activation: 0.4, path: [1] });
  // What the third passes on at the second hop is what it has by then.
  expect(arrivals.get(4)).toMatchObject({ activation: 0.2, hops: 2, path: [1, 3] });
});

test('a path names the way that the activation took, though a memory on it was reached more strongly later', () => {
  // 3 is reached weakly from 1 at once, and strongly from 2 over 4; 5 hears of 3 before that.
  const { arrivals } = spreadOver(
    [
      [1, 3, 0.1],
      [2, 4, 1],
      [4, 3, 1],
      [3, 5, 1],
    ],
    [
      { memoryNo: 1, activation: 1 },
      { memoryNo: 2, activation: 1 },
    ],
  );
  expect(arrivals.get(3)).toMatchObject({ activation: 0.25, path: [2, 4], hops: 2 });
  expect(arrivals.get(5)).toMatchObject({ activation: 0.025, path: [1, 3], hops: 2 });
});

test('a weight or decay of 0 brings nothing', () => {
  const hit = [{ memoryNo: 1, activation: 1 }];
  expect(spreadOver([[1, 2, 0]], hit).arrivals.size).toBe(0);
  expect(spreadOver([[1, 2, 1]], hit, { decayPerHop: 0 }).arrivals.size).toBe(0);
});

const share = fc.double({ min: 0, max: 1, noNaN: true });
const memoryNo = fc.integer({ min: 1, max: 12 });
const graph = fc.record({
  links: fc.uniqueArray(fc.tuple(memoryNo, memoryNo, share), {
    maxLength: 30,
    selector: ([one, other]) => [one, other].sort().join(),
  }),
  hits: fc
    .uniqueArray(fc.record({ memoryNo, activation: share }), {
      minLength: 1,
      maxLength: 6,
      selector: (hit) => hit.memoryNo,
    })
    .map((hits) => hits.toSorted((a, b) => b.activation - a.activation)),
  hops: fc.integer({ min: 0, max: 4 }),
  decayPerHop: share,
});

test('activation stays in 0..1, each arrival names a way of that length, and more hops only add', () => {
  fc.assert(
    fc.property(graph, ({ links, hits, hops, decayPerHop }) => {
      const { arrivals } = spreadOver(links, hits, { hops, decayPerHop });
      const own = new Map(hits.map((hit) => [hit.memoryNo, hit.activation]));
      const weightOf = (a: number, b: number) =>
        links.find(([one, other]) => (one === a && other === b) || (one === b && other === a))![2];
      for (const arrival of arrivals.values()) {
        expect(arrival.activation).toBeGreaterThan(own.get(arrival.memoryNo) ?? 0);
        expect(arrival.activation).toBeLessThanOrEqual(1);
        expect(arrival.hops).toBe(arrival.path.length);
        expect(arrival.hops).toBeLessThanOrEqual(hops);
        expect(arrival.from).toBe(arrival.path.at(-1));
        const way = [...arrival.path, arrival.memoryNo];
        expect(new Set(way).size).toBe(way.length);
        const product = way
          .slice(1)
          .reduce((left, at, hop) => left * weightOf(way[hop]!, at) * decayPerHop, own.get(way[0]!)!);
        expect(arrival.activation).toBeCloseTo(product, 12);
      }
      const further = spreadOver(links, hits, { hops: hops + 1, decayPerHop }).arrivals;
      for (const { memoryNo: at, activation } of arrivals.values()) {
        expect(further.get(at)!.activation).toBeGreaterThanOrEqual(activation);
      }
    }),
  );
});

test('the order of the links does not matter', () => {
  fc.assert(
    fc.property(graph, ({ links, hits, hops, decayPerHop }) => {
      const one = spreadOver(links, hits, { hops, decayPerHop }).arrivals;
      const other = spreadOver(links.toReversed(), hits, { hops, decayPerHop }).arrivals;
      const byMemoryNo = (arrivals: Spreading['arrivals']) => [...arrivals].sort(([a], [b]) => a - b);
      expect(byMemoryNo(other)).toEqual(byMemoryNo(one));
    }),
  );
});
