import { expect } from 'vitest';
import { listProposed } from '../../src/engine/store/contradictions.ts';
import { listNearDuplicateNos } from '../../src/engine/store/near-duplicates.ts';
import { createWorkBudget, hasWorkEnded, ROW_BYTES, runWithin } from '../../src/engine/store/work-budget.ts';
import { newMemory, START, type TestEngine } from '../support/engine-fixture.ts';
import { linkInPairs } from '../support/link-in-pairs.ts';

/** Number of memories that have expired, of one user, and of those that have not, of another user. */
const [EXPIRED, OTHERS] = [40, 4];
const NOW = START + 1_000;

/**
 * Checks that lists of near duplicates and of proposed contradictions count the pairs that they leave out, and that
 * those of one user do not depend on the memories of others.
 */
export async function pairsWork({ tenant, batch }: TestEngine): Promise<void> {
  const memories = Array.from({ length: EXPIRED + OTHERS }, (_, no) =>
    newMemory({ content: `note ${no}`, ...(no < EXPIRED ? { userId: 'ana', expiresAt: NOW } : { userId: 'ben' }) }),
  );
  await tenant.addMemories(memories);
  const { store } = batch.open();
  linkInPairs(store, (at) => ({ similarity: 0.99 - at / 10_000, foundAt: START - at }));
  const of = <T>(rows: number, list: () => T) => {
    const budget = createWorkBudget({ bytes: ROW_BYTES * rows, deadlineMs: 60_000 });
    const read = () => store.read(() => ({ list: list(), hasEnded: hasWorkEnded() }));
    return { ...runWithin(budget, read), left: budget.left / ROW_BYTES };
  };
  const duplicates = (rows: number, userId?: string) =>
    of(rows, () => {
      const { pairs, isCut } = listNearDuplicateNos(store, { userId, leastSimilarity: 0.8, now: NOW, share: 1 });
      return { pairs: pairs.map(({ earlier }) => earlier - first), isCut };
    });
  const proposals = (rows: number, userId?: string) =>
    of(rows, () => listProposed(store, { userId, limit: 10, now: NOW }).map(({ earlier }) => earlier - first));
  const first = store.read(() => store.prepare('SELECT min(seq) FROM memories').pluck().get()) as number;
  const [pairs, all] = [[EXPIRED, EXPIRED + 2], (EXPIRED + OTHERS) / 2];

  expect(duplicates(100)).toEqual({ list: { pairs, isCut: false }, hasEnded: false, left: 100 - all });
  expect(duplicates(5)).toEqual({ list: { pairs: [], isCut: true }, hasEnded: true, left: -1 });
  expect(duplicates(OTHERS, 'ben')).toMatchObject({ list: { pairs, isCut: false }, hasEnded: false });
  expect(duplicates(0, 'cem')).toMatchObject({ list: { pairs: [], isCut: false }, hasEnded: false });
  expect(proposals(100)).toEqual({ list: pairs, hasEnded: false, left: 100 - all });
  expect(proposals(100, 'ben')).toEqual({ list: pairs, hasEnded: false, left: 100 - all });
  expect(proposals(5)).toMatchObject({ hasEnded: true, left: -1 });
}
