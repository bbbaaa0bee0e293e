/**
 * Merges the segments of the word index as part of commits, in small steps. For each page that it wrote, a commit
 * merges as many pages as the index has levels, which bounds the number of segments. FTS5 would merge as much by itself
 * (`automerge`), but 64 pages a level at a time, and every fifth commit of 100 memories would take three times as long
 * as the others. The postings of a word in one partition (range of 131,072 row numbers) cannot be divided, so a step
 * may write more than it should: the most common word of short memories takes 300 pages.
 */

import type { Store } from '../open-store.ts';
import { readLevels, type Segment } from './structure.ts';

/** Number of pages still to be merged below which a commit merges nothing, since each step leaves a page half empty. */
const MIN_MERGED = 64;
/**
 * Greatest number of pages that a commit merges of what earlier commits have left (some 4 ms). A commit that owes more
 * than this for the pages that it wrote itself merges what it owes for them.
 */
const MAX_MERGED = 128;
/**
 * Greatest number of commits of one size for whose pages a step counts as having merged in advance, if it wrote more
 * pages than it should. With more of them there would be too many new segments.
 */
const MAX_SPARED = 4;

/** The latest transaction of a connection that wrote to the index. */
interface Writing {
  readonly transactionNo: number | undefined;
  /**
   * Names of the segments of the first level when that transaction began; null if the format of the index is not known.
   */
  readonly segments: ReadonlySet<string> | null;
}

const writings = new WeakMap<Store, Writing>();
/** For each connection, the number of pages that must still be merged for what it wrote; negative if it merged more. */
const owedPages = new WeakMap<Store, number>();

/**
 * Makes the commit of this write also merge a part of the index. Call inside a write, before the first row is put or
 * deleted; further calls in the same write do nothing.
 */
export function mergeWithCommit(store: Store): void {
  const { transactionNo } = store;
  if (writings.get(store)?.transactionNo === transactionNo) return;
  const levels = readLevels(store);
  writings.set(store, {
    transactionNo,
    segments: levels === undefined ? null : new Set((levels[0] ?? []).map(nameOf)),
  });
  store.beforeCommit(mergeAsWritten);
}

/**
 * Returns a name, such as `12.340`, by which a segment of the first level is recognised later: its number and that of
 * its last page. The number alone does not do, since FTS5 gives it to a new segment once a merge has used up the old
 * one; the new segment seldom has as many pages. Neither number changes while the segment exists: a merge removes pages
 * only from its beginning, and deleted rows are noted in pages of their own.
 */
function nameOf({ id, lastPage }: Segment): string {
  return `${id}.${lastPage}`;
}

function mergeAsWritten(store: Store): void {
  mergeText(store, { start: false, pages: 0 }); // FTS5 writes the rows that it still held back.
  const { segments } = writings.get(store)!;
  const levels = readLevels(store);
  if (segments === null || levels === undefined) {
    // New segments cannot be told from old ones. A fixed share keeps up with commits of some hundred memories.
    mergeText(store, { start: false, pages: MAX_MERGED });
    return;
  }
  const written = (levels[0] ?? []).filter((segment) => !segments.has(nameOf(segment)));
  if (written.length === 0) return;
  const owedNow = levels.length * written.reduce((sum, { firstPage, lastPage }) => sum + lastPage - firstPage + 1, 0);
  const owed = (owedPages.get(store) ?? 0) + owedNow;
  if (owed < MIN_MERGED) return void owedPages.set(store, owed);
  const isMerged = !mergeText(store, { start: false, pages: Math.min(owed, Math.max(MAX_MERGED, owedNow)) });
  const left = isMerged ? 0 : owed - pagesWritten(levels.flat(), (readLevels(store) ?? []).flat());
  owedPages.set(store, Math.max(left, -MAX_SPARED * owedNow));
}

/** Counts the pages that were written between two states of the segments. */
function pagesWritten(before: readonly Segment[], after: readonly Segment[]): number {
  const lastPages = new Map(before.map(({ id, lastPage }) => [id, lastPage]));
  return after.reduce((sum, { id, lastPage }) => sum + Math.max(0, lastPage - (lastPages.get(id) ?? 0)), 0);
}

/**
 * Merges the index by one step, which also removes the words of deleted rows from the file; does nothing in a database
 * without FTS5. Call inside a write.
 * @param start true to begin a merge of all segments into one; false to continue the merges that are due
 * @param pages number of pages after which the step ends; it may write more, as the rows of one term are not divided. 0
 *   only writes the rows that FTS5 still has in memory
 * @returns whether the step merged anything; if so, there may be more to merge
 */
export function mergeText(store: Store, { start, pages }: { start: boolean; pages: number }): boolean {
  if (store.words !== null) return false; // Its blocks hold no word of a deleted row.
  const changes = () => (store.prepare('SELECT total_changes() AS n').get() as { n: number }).n;
  const before = changes();
  store.prepare(`INSERT INTO memory_text (memory_text, rank) VALUES ('merge', ?)`).run(start ? -pages : pages);
  // The command itself counts as one change; a merge that did work shows at least one more.
  return changes() - before >= 2;
}

/**
 * Joins some old blocks of the index in PostgreSQL in one short commit, because queries read every block. The place
 * that is reached is stored with it. Call outside of a write.
 * @returns false, after no commit, if there are none; always in a file, whose segments are merged instead
 */
export function joinSomeText(store: Store): boolean {
  const { words } = store;
  if (words === null || !words.hasBlocksToJoin()) return false;
  store.write(() => words.joinBlocks());
  return true;
}
