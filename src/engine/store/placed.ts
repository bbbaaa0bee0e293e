/** Parts of pages of memories, found by number before any text is read. */
import type { CursorPage } from '../types.ts';
import { contentBytes, withinBytes } from './memories.ts';
import type { Store } from './open-store.ts';

/** Most memories that one read looks at for a page. */
export const LOOKED_AT_ONCE = 2_000;

/** A memory on a page, and the cursor of the page that would begin after it. */
export interface Placed {
  readonly memoryNo: number;
  readonly cursor: string;
}

/** A part of a page of memories, as one read finds it. */
export interface PlacedSlice {
  readonly placed: readonly Placed[];
  /** Bytes of their texts and values. */
  readonly bytes: number;
  /** Where the list goes on; null at its end. */
  readonly next: string | null;
}

/** A part of a page that is still wanted. */
export interface SliceWanted extends CursorPage {
  /** Most bytes of texts and values of its memories; one memory may have more. */
  readonly bytes: number;
  readonly now: number;
}

/** Entries of a list of memories that one read found, in the order of the list. */
export interface FoundPlaces<Entry extends { readonly memoryNo: number }> {
  /** The next entries of the list, fewer than `LOOKED_AT_ONCE` only at its end. */
  readonly found: readonly Entry[];
  /** The first of them, which were looked at. */
  readonly looked: readonly Entry[];
  /** The first of those that pass, at most as many as are wanted. */
  readonly passing: readonly Entry[];
  readonly wanted: SliceWanted;
  readonly cursorAfter: (entry: Entry) => string;
}

/** Makes the slice of a page: the entries that pass, up to the bytes that are wanted, and where the list goes on. */
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

/** The first of these entries whose texts and values have at most `bytes` together; the first one in any case. */
export function firstWithin<Entry extends { readonly memoryNo: number }>(
  store: Store,
  entries: readonly Entry[],
  bytes: number,
): readonly Entry[] {
  return entries.slice(0, withinBytes(store, numbersOf(entries), bytes).length);
}

const numbersOf = (entries: readonly { readonly memoryNo: number }[]) => entries.map(({ memoryNo }) => memoryNo);
