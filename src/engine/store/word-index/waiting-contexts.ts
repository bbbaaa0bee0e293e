/**
 * Keeps the numbers of memories whose words are to be written anew in later commits, because their contexts have
 * changed and one commit must not index much text: all writes wait for it. Until then they are found by their own
 * words, and by the words of their former contexts.
 */

import { hasManyTrips } from '../foresight.ts';
import type { Store } from '../open-store.ts';
import { deleteInfo, findInfo, putInfo } from '../store-info.ts';
import { parseStored } from '../stored-json.ts';
import { indexingWork } from '../text-sizes.ts';
import { indexedBytes, MAX_INDEXED_BYTES, reindexText } from './memory-text.ts';

/** Name of the entry in `store_info` that has the numbers, as JSON. */
export const WAITING_CONTEXTS = 'contexts_waiting';

/** How often writes on a connection have made memories wait. */
const delays = new WeakMap<Store, number>();

/** Returns how often writes on this connection have made memories wait, for a comparison before and after a command. */
export const countDelays = (store: Store): number => delays.get(store) ?? 0;

/**
 * Writes the words of memories anew whose contexts have changed, until the write has put much text
 * (`MAX_INDEXED_BYTES`) or in PostgreSQL took 150 round trips. The other memories wait for `reindexWaiting`. Call
 * inside a write.
 */
export function reindexFollowers(store: Store, memoryNos: Iterable<number>): void {
  const followers = [...new Set(memoryNos)];
  const waiting = followers.slice(reindexFirst(store, followers, 0));
  if (waiting.length === 0) return;
  putInfo(store, WAITING_CONTEXTS, JSON.stringify([...new Set([...listWaiting(store), ...waiting])]));
  delays.set(store, countDelays(store) + 1);
}

/**
 * Writes the words of the first waiting memories anew, of as many as one commit should; of one at least. Call inside a
 * write.
 * @returns whether others still wait
 */
export function reindexWaiting(store: Store): boolean {
  const waiting = listWaiting(store);
  const rest = waiting.slice(reindexFirst(store, waiting, 1));
  if (rest.length > 0) putInfo(store, WAITING_CONTEXTS, JSON.stringify(rest));
  else deleteInfo(store, WAITING_CONTEXTS);
  return rest.length > 0;
}

/** Writes the words of the first of these memories anew, of `least` at least. @returns their number */
function reindexFirst(store: Store, memoryNos: readonly number[], least: number): number {
  // One at a time: they may be long.
  for (const [place, memoryNo] of memoryNos.entries()) {
    if (place >= least && (hasManyTrips(store) || isTooMuch(store, memoryNo))) return place;
    reindexText(store, [memoryNo]);
  }
  return memoryNos.length;
}

/** Work of a write from which on the size of a text is looked up before the text is indexed as well. */
const MUCH_INDEXED_BYTES = MAX_INDEXED_BYTES / 4;

/** Tells whether the write would put too much text together with that of a memory. */
function isTooMuch(store: Store, memoryNo: number): boolean {
  const done = indexedBytes(store);
  if (done < MUCH_INDEXED_BYTES) return false;
  return done >= MAX_INDEXED_BYTES || done + (indexingWork(store, [memoryNo]).get(memoryNo) ?? 0) > MAX_INDEXED_BYTES;
}

/** Returns the number of memories that wait. */
export const countWaitingContexts = (store: Store): number => listWaiting(store).length;

function listWaiting(store: Store): number[] {
  return parseStored(findInfo(store, WAITING_CONTEXTS) ?? '[]') as number[];
}
