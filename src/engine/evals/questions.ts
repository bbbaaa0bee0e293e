/** What is asked of the items of evaluation sets, and how two askings of a set compare. Pure functions. */
import { createHash } from 'node:crypto';
import type { EvalItem, EvalScores, MemoryQuery } from '../types.ts';

/** Hits of a query whose item names no number. */
const DEFAULT_K = 10;

/** Makes the query of an item: it goes the way of any query, and leaves nothing behind. */
export function queryOfItem({ query, userId, k = DEFAULT_K }: EvalItem): MemoryQuery {
  return { query, k, filter: userId === undefined ? {} : { userIds: [userId] }, reinforce: false, isLogged: false };
}

/** Says in which of its measures a guarded set has fallen, with both numbers; nothing where it has not. */
export function fallsOf(
  before: Pick<EvalScores, 'recall' | 'rightlyEmpty'>,
  after: Pick<EvalScores, 'recall' | 'rightlyEmpty'>,
): string[] {
  return [
    ...fallOf('recall', before.recall, after.recall),
    ...fallOf('rightly empty', before.rightlyEmpty, after.rightlyEmpty),
  ];
}

function fallOf(measure: string, before: number | null, after: number | null): string[] {
  if (before === null || after === null || after >= before) return [];
  return [`${measure} ${before.toFixed(3)} → ${after.toFixed(3)}`];
}

/** Names settings or items in a run: equal values have equal hashes. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value), 'utf8').digest('hex').slice(0, 16);
}
