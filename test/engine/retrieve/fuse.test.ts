import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fuseByRank } from '../../../src/engine/retrieve/fuse.ts';

const list = fc.uniqueArray(fc.integer({ min: 1, max: 50 }), { maxLength: 30 });

test('the order of lists of equal weight does not matter', () => {
  fc.assert(
    fc.property(list, list, (a, b) => {
      const first = { seqs: a, weight: 0.5 };
      const second = { seqs: b, weight: 0.5 };
      expect(fuseByRank([first, second])).toEqual(fuseByRank([second, first]));
    }),
  );
});

test('one list alone keeps its order', () => {
  fc.assert(
    fc.property(list, (seqs) => {
      expect(fuseByRank([{ seqs, weight: 0.3 }]).map(({ seq }) => seq)).toEqual(seqs);
    }),
  );
});

test('a memory that both lists found leads one that only one found at the same rank', () => {
  const fused = fuseByRank([
    { seqs: [1, 2], weight: 0.5 },
    { seqs: [3, 2], weight: 0.5 },
  ]);
  // 2 is second twice (2/62) and beats 1 and 3, first once (1/61); these tie and stand by number.
  expect(fused.map(({ seq }) => seq)).toEqual([2, 1, 3]);
  expect(fused[0]!.score).toBeCloseTo(1 / 62, 12);
});

test('a list of weight 0 has no say, not even by bringing candidates', () => {
  expect(
    fuseByRank([
      { seqs: [1], weight: 1 },
      { seqs: [2], weight: 0 },
    ]),
  ).toEqual([{ seq: 1, score: 1 / 61 }]);
});
