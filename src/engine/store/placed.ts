/** Finds the numbers of the memories on a page, in slices, before any text is read. */

import type { CursorPage } from '../types.ts';
import { contentBytes, withinBytes } from './text-sizes.ts';
import type { Store } from './open-store.ts';

/** Greatest number of memories that one read examines for a page. */
export const LOOKED_AT_ONCE = 2_000;

/** A memory on a page, and the cursor of a page that would begin after it. */
export interface Placed {
  readonly memoryNo: number;
  readonly cursor: string;
}

/** A slice of a page of memories, as one read returns it. */
export interface PlacedSlice {
  readonly placed: readonly Placed[];
  /** Size of the memories in `placed` without their metadata, in bytes. */
  readonly bytes: number;
  /** Cursor with which the list continues; null at the end of the list. */
  readonly next: string | null;
}

/** The part of a page that is still to be read: its cursor, and the greatest number and size of its memories. */
export interface SliceWanted extends CursorPage {
  /** Greatest number of bytes of texts, values and metadata together; a single memory may have more. */
  readonly bytes: number;
  readonly now: number;
}

/** Entries of a list of memories that one read has found and filtered, in the order of the list. */
export interface FoundPlaces<Entry extends { readonly memoryNo: number }> {
  /**
   * The next entries of the list, before filtering. They are fewer than 2,000 (`LOOKED_AT_ONCE`) only at the end of the
   * list.
   */
  readonly found: readonly Entry[];
  /** The entries at the beginning of `found` to which the filter was applied. */
  readonly looked: readonly Entry[];
  /** The first entries of `looked` that pass the filter, at most `wanted.limit`. */
  readonly passing: readonly Entry[];
  readonly wanted: SliceWanted;
  readonly cursorAfter: (entry: Entry) => string;
}

/**
 * Makes a slice of a page: the passing entries that together fit into `wanted.bytes`, and the cursor with which the
 * list continues.
 */
export function placesOf<Entry extends { readonly memoryNo: number }>(
  store: Store,
  { found, looked, passing, wanted, cursorAfter }: FoundPlaces<Entry>,
): PlacedSlice {
  const taken = firstWithin(store, passing, wanted.bytes);
  const isCut = taken.length === wanted.limit || taken.length < passing.length;
  const isEnd = !isCut && looked.length === found.length && found.length < LOOKED_AT_ONCE;
  const last = isCut ? taken.at(-1) : looked.at(-1);
  const bytesOf = contentBytes(store, numbersOf(taken));
  return {
    placed: taken.map((entry) => ({ memoryNo: entry.memoryNo, cursor: cursorAfter(entry) })),
    bytes: [...bytesOf.values()].reduce((sum, bytes) => sum + bytes, 0),
    next: isEnd || last === undefined ? null : cursorAfter(last),
  };
}

/**
 * Returns the first entries, as many as have at most `bytes` bytes of texts, values and metadata together; at least
 * one.
 */
export function firstWithin<Entry extends { readonly memoryNo: number }>(
  store: Store,
  entries: readonly Entry[],
  bytes: number,
): readonly Entry[] {
  return entries.slice(0, withinBytes(store, numbersOf(entries), bytes).length);
}

const numbersOf = (entries: readonly { readonly memoryNo: number }[]) => entries.map(({ memoryNo }) => memoryNo);
