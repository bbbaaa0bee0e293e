import { expect, test } from 'vitest';
import type { Candidate } from '../../../src/engine/retrieve/candidate.ts';
import { applyFloors, doesMinScoreApply, reportFloor } from '../../../src/engine/retrieve/floor.ts';
import { askingSentences } from '../../../src/engine/text/asking-sentences.ts';

const candidate = (memoryNo: number, rawScore: number, score: number) =>
  ({ row: { memoryNo }, rawScore, score }) as Candidate;
const LIST = [candidate(1, 0.8, 0.6), candidate(2, 0.4, 0.3), candidate(3, 0.2, 0.15)];
const memoryNosOf = (list: readonly Candidate[]) => list.map(({ row }) => row.memoryNo);

test('without floors everything stays', () => {
  const { kept, cut } = applyFloors(LIST, { minScore: 0, relativeFloor: 0, confidence: 1, decayPerHop: 0.5 });
  expect(memoryNosOf(kept)).toEqual([1, 2, 3]);
  expect(cut.size).toBe(0);
});

test('a score at the floor stays, one under it goes', () => {
  const { kept, cut } = applyFloors(LIST, { minScore: 0.3, relativeFloor: 0, confidence: 1, decayPerHop: 0.5 });
  expect(memoryNosOf(kept)).toEqual([1, 2]);
  expect([...cut]).toEqual([[3, 'below_min_score']]);
});

test('the relative floor is a share of the best raw score', () => {
  const { kept, cut } = applyFloors(LIST, { minScore: 0, relativeFloor: 0.5, confidence: 1, decayPerHop: 0.5 });
  expect(memoryNosOf(kept)).toEqual([1, 2]);
  expect([...cut]).toEqual([[3, 'below_relative_floor']]);
});

test('the best counts wherever it stands, and the order stays', () => {
  // As a model may have ordered them.
  const { kept } = applyFloors([LIST[1]!, LIST[2]!, LIST[0]!], {
    minScore: 0,
    relativeFloor: 0.5,
    confidence: 1,
    decayPerHop: 0.5,
  });
  expect(memoryNosOf(kept)).toEqual([2, 1]);
});

test('nothing gives nothing', () => {
  expect(applyFloors([], { minScore: 0.3, relativeFloor: 0.5, confidence: 1, decayPerHop: 0.5 })).toEqual({
    kept: [],
    cut: new Map(),
  });
});

test('what a strong link brought stays where the query is sure enough, as it can reach no score by words', () => {
  const [best] = LIST;
  const reached = (activation: number): Candidate => ({
    ...best!,
    row: { ...best!.row, memoryNo: 99 },
    fused: null,
    arrival: { memoryNo: 99, activation, from: best!.row.memoryNo, via: 'supports', weight: 0.9, hops: 1, path: [99] },
    score: 0.1,
  });
  const memoryNosOf = (candidates: readonly Candidate[], confidence: number) =>
    applyFloors(candidates, { minScore: 0.3, relativeFloor: 0, confidence, decayPerHop: 0.5 }).kept.map(
      ({ row }) => row.memoryNo,
    );
  expect(memoryNosOf([reached(0.45)], 0.5)).toEqual([99]);
  expect(memoryNosOf([reached(0.45)], 0.2)).toEqual([]);
  expect(memoryNosOf([reached(0.1)], 0.5)).toEqual([]);
});

test('the report counts what is under the floor and names the best of it', () => {
  expect(reportFloor(LIST, { minScore: 0.35, acted: true })).toEqual({
    minScore: 0.35,
    acted: true,
    below: 2,
    bestBelow: 0.3,
  });
  expect(reportFloor(LIST, { minScore: 0.1, acted: true })).toBeUndefined();
  expect(reportFloor([], { minScore: 0.3, acted: true })).toBeUndefined();
  expect(reportFloor(LIST, { minScore: 0.1, acted: false })).toEqual({
    minScore: 0.1,
    acted: false,
    reason: 'asking_sentence_unknown',
    below: 0,
    bestBelow: null,
  });
});

test('a default floor has no ground where nothing tells which sentence asks; one that was asked for always has', () => {
  expect(doesMinScoreApply({}, askingSentences('The gate is closed. Find the key.'))).toBe(false);
  expect(doesMinScoreApply({ minScore: 0.3 }, askingSentences('The gate is closed. Find the key.'))).toBe(true);
  expect(doesMinScoreApply({}, askingSentences('The gate is closed. Where is the key?'))).toBe(true);
  expect(doesMinScoreApply({}, askingSentences('Find the key.'))).toBe(true);
});
