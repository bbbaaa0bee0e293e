/** The queries of evaluation items, and the comparison of two runs of a set. */
import { createHash } from 'node:crypto';
import { takeTurn } from '../turns.ts';
import type { EvalItem, EvalScores, MemoryQuery } from '../types.ts';

/** Number of hits that the query of an evaluation item returns if the item does not state `k`. */
const EVALUATED_K = 10;
const HASH_DIGITS = 16;

/**
 * Makes the query of an evaluation item. The query is answered like any other, but reinforces no memory and is not
 * logged.
 */
export function queryOfItem({ query, userId, k = EVALUATED_K }: EvalItem): MemoryQuery {
  return { query, k, filter: userId === undefined ? {} : { userIds: [userId] }, reinforce: false, isLogged: false };
}

/** The measures of a guarded evaluation set that a change (of the model or the defaults) must not make worse. */
export type GuardedScores = Pick<EvalScores, 'recall' | 'rightlyEmpty' | 'forbidden'>;

/**
 * Lists the measures in which the scores of an evaluation set got worse, each with the number before and after; empty
 * if none did. A measure that is null before or after is not compared.
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

/**
 * Returns the hash by which an evaluation run tells whether settings or items have changed: the first 16 hexadecimal
 * digits of the SHA-256 of their JSON.
 */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value), 'utf8').digest('hex').slice(0, HASH_DIGITS);
}

/** Returns the `hashOf` the items of a set. Other work is let in between two items. */
export async function hashOfItems(items: readonly EvalItem[]): Promise<string> {
  const hash = createHash('sha256').update('[');
  for (const [at, item] of items.entries()) {
    await takeTurn();
    hash.update(`${at === 0 ? '' : ','}${JSON.stringify(item)}`, 'utf8');
  }
  return hash.update(']').digest('hex').slice(0, HASH_DIGITS);
}
