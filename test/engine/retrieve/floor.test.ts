import { expect, test } from 'vitest';
import type { Candidate } from '../../../src/engine/retrieve/candidate.ts';
import { applyFloors } from '../../../src/engine/retrieve/floor.ts';

const candidate = (seq: number, rawScore: number, score: number) => ({ row: { seq }, rawScore, score }) as Candidate;
const LIST = [candidate(1, 0.8, 0.6), candidate(2, 0.4, 0.3), candidate(3, 0.2, 0.15)];
const seqsOf = (list: readonly Candidate[]) => list.map(({ row }) => row.seq);

test('without floors everything stays', () => {
  const { kept, cut } = applyFloors(LIST, { minScore: 0, relativeFloor: 0 });
  expect(seqsOf(kept)).toEqual([1, 2, 3]);
  expect(cut.size).toBe(0);
});

test('a score at the floor stays, one under it goes', () => {
  const { kept, cut } = applyFloors(LIST, { minScore: 0.3, relativeFloor: 0 });
  expect(seqsOf(kept)).toEqual([1, 2]);
  expect([...cut]).toEqual([[3, 'below_min_score']]);
});

test('the relative floor is a share of the best raw score', () => {
  const { kept, cut } = applyFloors(LIST, { minScore: 0, relativeFloor: 0.5 });
  expect(seqsOf(kept)).toEqual([1, 2]);
  expect([...cut]).toEqual([[3, 'below_relative_floor']]);
});

test('the best counts wherever it stands, and the order stays', () => {
  // As a model may have ordered them.
  const { kept } = applyFloors([LIST[1]!, LIST[2]!, LIST[0]!], { minScore: 0, relativeFloor: 0.5 });
  expect(seqsOf(kept)).toEqual([2, 1]);
});

test('nothing gives nothing', () => {
  expect(applyFloors([], { minScore: 0.3, relativeFloor: 0.5 })).toEqual({ kept: [], cut: new Map() });
});
