import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fuseByRank } from '../../../src/engine/retrieve/fuse.ts';

const list = fc.uniqueArray(fc.integer({ min: 1, max: 50 }), { maxLength: 30 });

test('the order of the two lists does not matter, whatever their weights', () => {
  fc.assert(
    fc.property(list, list, fc.double({ min: 0, max: 1, noNaN: true }), (a, b, weight) => {
      const first = { memoryNos: a, weight };
      const second = { memoryNos: b, weight: 1 - weight };
      expect(fuseByRank([first, second])).toEqual(fuseByRank([second, first]));
    }),
  );
});

test('scores lie between 0 and what first in all lists would give, and fall', () => {
  const hundredths = fc.integer({ min: 0, max: 100 }).map((weight) => weight / 100);
  const lists = fc.array(fc.record({ memoryNos: list, weight: hundredths }), { maxLength: 4 });
  fc.assert(
    fc.property(lists, (given) => {
      const most = given.reduce((sum, { weight }) => sum + weight, 0) / 61;
      const fused = fuseByRank(given);
      for (const [place, { score, memoryNo }] of fused.entries()) {
        expect(score > 0 && score <= most + 1e-12).toBe(true);
        const next = fused[place + 1];
        if (next !== undefined)
          expect(next.score < score || (next.score === score && next.memoryNo > memoryNo)).toBe(true);
      }
    }),
  );
});

test('a rise in one list never lowers a memory', () => {
  fc.assert(
    fc.property(list, list, fc.nat(), (a, b, pick) => {
      fc.pre(a.length > 1);
      const place = 1 + (pick % (a.length - 1));
      const risen = a.with(place - 1, a[place]!).with(place, a[place - 1]!);
      const scoreIn = (memoryNos: readonly number[]) =>
        fuseByRank([
          { memoryNos, weight: 0.5 },
          { memoryNos: b, weight: 0.5 },
        ]).find(({ memoryNo }) => memoryNo === a[place])!.score;
      expect(scoreIn(risen)).toBeGreaterThan(scoreIn(a));
    }),
  );
});

test('one list alone keeps its order', () => {
  fc.assert(
    fc.property(list, (memoryNos) => {
      expect(fuseByRank([{ memoryNos, weight: 0.3 }]).map(({ memoryNo }) => memoryNo)).toEqual(memoryNos);
    }),
  );
});

test('a memory that both lists found leads one that only one found at the same rank', () => {
  const fused = fuseByRank([
    { memoryNos: [1, 2], weight: 0.5 },
    { memoryNos: [3, 2], weight: 0.5 },
  ]);
  // 2 is second twice (2/62) and beats 1 and 3, first once (1/61); these tie and stand by number.
  expect(fused.map(({ memoryNo }) => memoryNo)).toEqual([2, 1, 3]);
  expect(fused[0]!.score).toBeCloseTo(1 / 62, 12);
});

test.each([
  // memv: vector_weight / (60 + rank) + (1 - vector_weight) / (60 + rank); what is first by meaning and third by words.
  [0.5, 0.5 / 61 + 0.5 / 63],
  [0.8, 0.8 / 61 + 0.2 / 63],
  [0.2, 0.2 / 61 + 0.8 / 63],
])('with a vector weight of %d it is memv’s sum', (vectorWeight, score) => {
  const fused = fuseByRank([
    { memoryNos: [2, 3, 1], weight: 1 - vectorWeight },
    { memoryNos: [1, 4], weight: vectorWeight },
  ]);
  expect(fused.find(({ memoryNo }) => memoryNo === 1)!.score).toBeCloseTo(score, 12);
});

test('with equal lists it orders as open-mem’s plain sum of 1 / (60 + rank)', () => {
  const [words, vectors] = [
    [7, 3, 9],
    [3, 5, 7],
  ];
  const plain = new Map<number, number>();
  for (const ranked of [words, vectors]) {
    for (const [place, memoryNo] of ranked.entries())
      plain.set(memoryNo, (plain.get(memoryNo) ?? 0) + 1 / (60 + place + 1));
  }
  const expected = [...plain].sort(([, a], [, b]) => b - a).map(([memoryNo]) => memoryNo);
  expect(expected).toEqual([3, 7, 5, 9]);
  const fused = fuseByRank([
    { memoryNos: words, weight: 0.5 },
    { memoryNos: vectors, weight: 0.5 },
  ]);
  expect(fused.map(({ memoryNo }) => memoryNo)).toEqual(expected);
});

test('a list of weight 0 has no say, not even by bringing candidates', () => {
  expect(
    fuseByRank([
      { memoryNos: [1], weight: 1 },
      { memoryNos: [2], weight: 0 },
    ]),
  ).toEqual([{ memoryNo: 1, score: 1 / 61 }]);
});
