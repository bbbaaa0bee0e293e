/** What a caller of a list asks for. */
import type { Memory } from './memory.ts';

/** Which part of a list is wanted. */
export interface Page {
  /** Most items returned, from 0. */
  readonly limit: number;
  /** Items skipped at the start of the list; 0 for the first page. */
  readonly offset: number;
}

/** Longest cursor, in characters. The longest place, an item's namespace and key, takes less. */
export const MAX_CURSOR_CHARACTERS = 8_192;

/** Which part of a list with cursors is wanted. */
export interface CursorPage {
  /** Most entries returned, from 1. A page may have fewer, or none, and not be the last one. */
  readonly limit: number;
  /** Place after which the page begins, as a page of the same list gave it; the first page if left out. */
  readonly cursor?: string | undefined;
}

/** A page of a list with cursors. An entry that is there all the time is on exactly one page. */
export interface ListPage<Entry> {
  readonly items: readonly Entry[];
  /** Cursor of the next page; null at the end of the list. */
  readonly next: string | null;
}

/** A memory on a page, with the cursor of the page that would begin after it. */
export interface ListedMemory {
  readonly memory: Memory;
  readonly cursor: string;
}

/**
 * A page of memories that are read slice by slice, each of at most half a megabyte of text or one memory. A memory that
 * is erased meanwhile is left out.
 */
export interface MemorySlices {
  readonly slices: AsyncIterable<readonly ListedMemory[]>;
  /** Cursor of the next page; null at the end of the list. */
  readonly next: string | null;
}

/** Which revisions of a memory are wanted. */
export interface RevisionPage {
  /** Most revisions returned, from 1; all of them by default. */
  readonly limit?: number | undefined;
  /** Only revisions that replaced a lower version than this; all by default. */
  readonly before?: number | undefined;
}
