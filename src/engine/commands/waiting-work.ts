/**
 * Work that a commit leaves to later ones, since the writes of all tenants wait for a commit: superseded memories end
 * anew, and words are written anew of memories whose contexts have changed. Who has left it calls again until none is
 * left, and the upkeep does what an interrupted caller has left.
 */

import { findInfos } from '../store/store-info.ts';
import { reindexWaiting, WAITING_CONTEXTS } from '../store/word-index/waiting-contexts.ts';
import { settleEnds, WAITING_ENDS } from './settle-ends.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Does work that earlier commits have left, as much of it as one commit should. Call it inside a write.
 * @returns whether more of it waits
 */
export function doWaiting(context: Pick<WriteContext, 'store' | 'now'>, _: Record<never, never>): boolean {
  const { store } = context;
  const notes = findInfos(store, [WAITING_CONTEXTS, WAITING_ENDS]);
  if (notes.has(WAITING_ENDS)) return settleEnds(context, {}) || notes.has(WAITING_CONTEXTS);
  return notes.has(WAITING_CONTEXTS) && reindexWaiting(store);
}
