/** The queries of evaluation items, and the comparison of two runs of a set. Pure functions. */
import { createHash } from 'node:crypto';
import type { EvalItem, EvalScores, MemoryQuery } from '../types.ts';

/** Number of hits of a query whose item states none. */
const EVALUATED_K = 10;

/** Makes the query of an item. It is answered like any query, but reinforces nothing and is not logged. */
export function queryOfItem({ query, userId, k = EVALUATED_K }: EvalItem): MemoryQuery {
  return { query, k, filter: userId === undefined ? {} : { userIds: [userId] }, reinforce: false, isLogged: false };
}

/** The measures in which a guarded set can fall. */
export type GuardedScores = Pick<EvalScores, 'recall' | 'rightlyEmpty' | 'forbidden'>;

/**
 * Lists the measures in which a guarded set has fallen, each with both numbers; empty if it has not. A measure that is
 * null before or after is not compared.
 */
export function fallsOf(before: GuardedScores, after: GuardedScores): string[] {
  return [
    ...fallOf('recall', before.recall, after.recall),
    ...fallOf('rightly empty', before.rightlyEmpty, after.rightlyEmpty),
    ...(after.forbidden > before.forbidden ? [`with forbidden hits ${before.forbidden} → ${after.forbidden}`] : []),
  ];
}

function fallOf(measure: string, before: number | null, after: number | null): string[] {
  if (before === null || after === null || after >= before) return [];
  return [`${measure} ${before.toFixed(3)} → ${after.toFixed(3)}`];
}

/** Returns the hash of settings or items for a run: 16 hexadecimal digits of the SHA-256 of their JSON. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value), 'utf8').digest('hex').slice(0, 16);
}
