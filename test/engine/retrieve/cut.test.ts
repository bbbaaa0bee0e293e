import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Candidate } from '../../../src/engine/retrieve/candidate.ts';
import { cutToAnswer, fitOf, reportCut } from '../../../src/engine/retrieve/cut.ts';
import type { Measured } from '../../../src/engine/retrieve/evidence-meter.ts';

const candidate = (memoryNo: number, adjustments: Candidate['adjustments'] = []) =>
  ({ row: { memoryNo }, adjustments }) as Candidate;
const measured = (topicHeld: number, { near = 0, namesHeld = 1 } = {}) =>
  ({ topicHeld, namesHeld, near, strength: 0, topic: 0, held: 0 }) satisfies Measured;
/** The numbers of the memories that an exact cut keeps of candidates with these fits. */
const keptOf = (fits: readonly number[]) =>
  cutToAnswer(
    { kept: fits.map((_, place) => candidate(place)), cut: new Map() },
    new Map(fits.map((fit, place) => [place, measured(fit)])),
  ).kept.map(({ row }) => row.memoryNo);

test('an answer ends at the largest gap, and keeps its order', () => {
  expect(keptOf([0.7, 1, 0.95])).toEqual([1, 2]);
  expect(keptOf([1, 0.62, 0.9])).toEqual([0, 2]);
});

test('without a clear gap all stay that hold enough', () => {
  expect(keptOf([0.9, 0.8, 0.7])).toEqual([0, 1, 2]);
  expect(keptOf([0.9, 0.8, 0.5])).toEqual([0, 1]);
});

test('where nothing holds enough there is no answer', () => {
  expect(keptOf([0.5, 0.4])).toEqual([]);
  expect(keptOf([])).toEqual([]);
});

test('what was not examined is left out, and the outcomes of the floors stay', () => {
  const floored = { kept: [candidate(1), candidate(2)], cut: new Map([[3, 'below_min_score' as const]]) };
  const { kept, cut } = cutToAnswer(floored, new Map([[1, measured(1)]]));
  expect(kept.map(({ row }) => row.memoryNo)).toEqual([1]);
  expect([...cut]).toEqual([
    [3, 'below_min_score'],
    [2, 'not_exact'],
  ]);
});

test('a contradicted memory counts less by its factor, one that is merely reranked does not', () => {
  const kept = [
    candidate(1),
    candidate(2, [{ by: 'contradicted', factor: 0.3 }]),
    candidate(3, [{ by: 'rerank', factor: 0.3 }]),
  ];
  const all = new Map([1, 2, 3].map((memoryNo) => [memoryNo, measured(1)]));
  expect(cutToAnswer({ kept, cut: new Map() }, all).kept.map(({ row }) => row.memoryNo)).toEqual([1, 3]);
});

test('a memory about the same person that says something else fits less than one that says it of another', () => {
  expect(fitOf(measured(0))).toBe(0);
  expect(fitOf(measured(1, { namesHeld: 0 }))).toBeLessThan(fitOf(measured(0.8)));
  expect(fitOf(measured(0.5, { near: 0.4 }))).toBeGreaterThan(fitOf(measured(0.5)));
});

test('whatever the fits, the answer is the best of them and none that is equal to a kept one is left out', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 1.5, noNaN: true }), { maxLength: 20 }), (fits) => {
      const kept = new Set(keptOf(fits));
      const [inside, outside] = [fits.filter((_, at) => kept.has(at)), fits.filter((_, at) => !kept.has(at))];
      expect(Math.min(...inside)).toBeGreaterThan(Math.max(-1, ...outside));
    }),
  );
});

test('the report counts what the cut itself left out', () => {
  const cut = new Map([
    [1, 'below_min_score' as const],
    [2, 'not_exact' as const],
    [3, 'below_relative_floor' as const],
  ]);
  expect(reportCut('exact', { kept: [], cut })).toEqual({ mode: 'exact', leftOut: 1 });
  expect(reportCut('relative', { kept: [], cut })).toEqual({ mode: 'relative', leftOut: 1 });
  expect(reportCut('none', { kept: [], cut })).toBeUndefined();
  expect(reportCut('exact', { kept: [], cut: new Map() })).toBeUndefined();
});
