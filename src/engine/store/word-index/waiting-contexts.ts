/**
 * Keeps the numbers of memories whose words are to be written anew in later commits, because their contexts have
 * changed and one commit must not index much text: all writes wait for it. Until then they are found by their own
 * words, and by the words of their former contexts.
 */

import type { Store } from '../open-store.ts';
import { deleteInfo, findInfo, putInfo } from '../store-info.ts';
import { parseStored } from '../stored-json.ts';
import { indexingWork } from '../text-sizes.ts';
import { indexedBytes, MAX_INDEXED_BYTES, reindexText } from './memory-text.ts';

/** Name of the entry in `store_info` that has the numbers, as JSON. */
export const WAITING_CONTEXTS = 'contexts_waiting';

/**
 * Writes the words of memories anew, as far as the commit should index them; the others wait. Call inside a write.
 * @param others further work of the commit, beside that of rows that were put, in the unit of `insertText`
 * @returns whether some wait
 */
export function reindexOrWait(store: Store, memoryNos: readonly number[], others = 0): boolean {
  if (memoryNos.length === 0) return false;
  const left = reindexSome(store, memoryNos, others);
  if (left.length > 0) putWaiting(store, left);
  return left.length > 0;
}

/** Adds memories to those whose words `reindexWaiting` writes anew. Call inside a write. */
export function putWaiting(store: Store, memoryNos: readonly number[]): void {
  putInfo(store, WAITING_CONTEXTS, JSON.stringify([...new Set([...listWaiting(store), ...memoryNos])]));
}

/**
 * Writes the words of the first waiting memories anew, as many as one commit should (`MAX_INDEXED_BYTES`) or one. Call
 * inside a write.
 * @returns whether others still wait
 */
export function reindexWaiting(store: Store): boolean {
  const waiting = listWaiting(store);
  // The first one in any case, whatever else the commit has indexed.
  reindexText(store, waiting.slice(0, 1));
  const rest = reindexSome(store, waiting.slice(1));
  if (rest.length > 0) putInfo(store, WAITING_CONTEXTS, JSON.stringify(rest));
  else deleteInfo(store, WAITING_CONTEXTS);
  return rest.length > 0;
}

/** Writes the words of those of these memories anew that the commit may still take. @returns the others */
function reindexSome(store: Store, memoryNos: readonly number[], others = 0): readonly number[] {
  const work = indexingWork(store, memoryNos);
  const left: number[] = [];
  for (const memoryNo of memoryNos) {
    const done = indexedBytes(store) + others;
    if (done > 0 && done + (work.get(memoryNo) ?? 0) > MAX_INDEXED_BYTES) left.push(memoryNo);
    // One at a time: they may be long.
    else reindexText(store, [memoryNo]);
  }
  return left;
}

function listWaiting(store: Store): number[] {
  return parseStored(findInfo(store, WAITING_CONTEXTS) ?? '[]') as number[];
}
