/** Pages of lists: which page a caller asks for, and what a page holds. */
import type { Memory } from './memory.ts';

/** Selects a page of a list by a number of entries to skip. */
export interface Page {
  /** Greatest number of entries on the page; 0 for none. */
  readonly limit: number;
  /** Number of entries skipped at the start of the list; 0 for the first page. */
  readonly offset: number;
}

/** Greatest length of a cursor, in characters. The longest one, of an item's namespace and key, is shorter. */
export const MAX_CURSOR_CHARACTERS = 8_192;

/** Selects a page of a list by a cursor. */
export interface CursorPage {
  /** Greatest number of entries on the page, from 1. A page may have fewer, or none, and still not be the last. */
  readonly limit: number;
  /**
   * Cursor after which the page begins, as `ListPage.next` of the same list returned it; the first page if left out.
   */
  readonly cursor?: string | undefined;
}

/**
 * A page of a list with cursors. An entry that exists, and keeps its place in the order, while all pages are read is on
 * exactly one of them.
 */
export interface ListPage<Entry> {
  readonly items: readonly Entry[];
  /** Cursor of the next page; null if this is the last page. */
  readonly next: string | null;
}

/** A memory on a page, with the cursor of a page that would begin after it. */
export interface ListedMemory {
  readonly memory: Memory;
  readonly cursor: string;
}

/**
 * A page of memories that is read slice by slice while it is iterated, which can be done once. Each slice has at most
 * 512 KiB of text or one memory. A memory that is erased before its slice is read is left out.
 */
export interface MemorySlices {
  readonly slices: AsyncIterable<readonly ListedMemory[]>;
  /** Cursor of the next page; null if this is the last page. */
  readonly next: string | null;
}

/** The memories of a page in slices, which can be iterated once. Each slice is read when it is asked for. */
export interface MemoryStream extends AsyncIterable<readonly Memory[]> {
  /**
   * Number of memories that were listed so far, with those that were left out of their slices; all of the page once the
   * iteration has ended.
   */
  readonly listed: number;
}

/** Selects revisions of a memory for a list, newest first. */
export interface RevisionPage {
  /** Greatest number of revisions returned, from 1; all of them if left out. */
  readonly limit?: number | undefined;
  /** Lists only revisions that replaced a version lower than this; all if left out. */
  readonly before?: number | undefined;
}
