/**
 * Keeps the numbers of memories whose words are to be written anew in later commits, because their contexts have
 * changed and one commit must not index much text: all writes wait for it. Until then they are found by their own
 * words, and by the words of their former contexts.
 */

import type { Store } from '../open-store.ts';
import { deleteInfo, findInfo, putInfo } from '../store-info.ts';
import { parseStored } from '../stored-json.ts';
import { withinBytes } from '../text-sizes.ts';
import { reindexText } from './memory-text.ts';

/** Name of the entry in `store_info` that has the numbers, as JSON. */
export const WAITING_CONTEXTS = 'contexts_waiting';

/**
 * Size of the memories (bytes of texts, values and metadata) that one call of `reindexWaiting` indexes, or one memory:
 * some 0.25 s.
 */
const REINDEXED_BYTES = 512 * 1024;

/** Adds memories to those whose words `reindexWaiting` writes anew. Call inside a write. */
export function putWaiting(store: Store, memoryNos: readonly number[]): void {
  putInfo(store, WAITING_CONTEXTS, JSON.stringify([...new Set([...listWaiting(store), ...memoryNos])]));
}

/**
 * Writes the words of the first waiting memories anew: of 512 KiB of memories, or one memory. Call inside a write.
 * @returns whether others still wait
 */
export function reindexWaiting(store: Store): boolean {
  const waiting = listWaiting(store);
  const taken = withinBytes(store, waiting, REINDEXED_BYTES);
  // One at a time: they may be long.
  for (const memoryNo of taken) reindexText(store, [memoryNo]);
  const rest = waiting.slice(taken.length);
  if (rest.length > 0) putInfo(store, WAITING_CONTEXTS, JSON.stringify(rest));
  else deleteInfo(store, WAITING_CONTEXTS);
  return rest.length > 0;
}

function listWaiting(store: Store): number[] {
  return parseStored(findInfo(store, WAITING_CONTEXTS) ?? '[]') as number[];
}
