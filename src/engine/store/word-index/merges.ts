import type { Store } from '../open-store.ts';
import { readLevels, type Segment } from './structure.ts';

/**
 * When the segments of the word index are merged. Each commit merges for each page that it wrote as many pages as there are levels, which
 * keeps the number of segments down. FTS5 does as much by itself (`automerge`), but 64 pages a level at a time: of commits of 100 memories
 * every fifth took three times as long as the others. What cannot be divided is a word of one partition (tokens.ts), so that a step writes
 * more than it is told to: the most common word of short memories takes 300 pages.
 */

/** Owed pages below which a commit merges nothing, since each step leaves a page half empty. */
const MERGED_LEAST = 64;
/** Pages that a small commit merges at most of those that earlier commits left over: some 4 ms. */
const MERGED_MOST = 128;
/**
 * After a step that took longer than it was to, at most this many commits of the kind merge nothing; after more the new segments would be
 * too many.
 */
const SPARED_MOST = 4;

/** The last transaction of a connection that wrote to the index. */
interface Writing {
  readonly transactionNo: number | undefined;
  /** Names of the new segments that there were before it; null where the format is not known. */
  readonly segments: ReadonlySet<string> | null;
}

const writings = new WeakMap<Store, Writing>();
/** Pages that have yet to be merged for what was written on a connection; below 0 where more was merged. */
const owedPages = new WeakMap<Store, number>();

/**
 * Has the commit of this write merge its share of the index. Call before the first row that a write puts or deletes: FTS5 writes a segment
 * for each MB of rows, and none where rows are only deleted.
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

/** A number is given again when its segment was merged, seldom to one of as many pages; merges and deletes leave the last page as it is. */
function nameOf({ id, lastPage }: Segment): string {
  return `${id}.${lastPage}`;
}

function mergeAsWritten(store: Store): void {
  mergeText(store, { start: false, pages: 0 }); // FTS5 writes what it has held back.
  const { segments } = writings.get(store)!;
  const levels = readLevels(store);
  if (segments === null || levels === undefined) {
    // What was written cannot be told from what was there. A fixed share keeps up with commits of some hundred memories.
    mergeText(store, { start: false, pages: MERGED_MOST });
    return;
  }
  const written = (levels[0] ?? []).filter((segment) => !segments.has(nameOf(segment)));
  if (written.length === 0) return;
  const owedNow = levels.length * written.reduce((sum, { firstPage, lastPage }) => sum + lastPage - firstPage + 1, 0);
  const owed = (owedPages.get(store) ?? 0) + owedNow;
  if (owed < MERGED_LEAST) return void owedPages.set(store, owed);
  const isMerged = !mergeText(store, { start: false, pages: Math.min(owed, Math.max(MERGED_MOST, owedNow)) });
  const left = isMerged ? 0 : owed - pagesWritten(levels.flat(), (readLevels(store) ?? []).flat());
  owedPages.set(store, Math.max(left, -SPARED_MOST * owedNow));
}

/** Pages that were written between two looks at the index. */
function pagesWritten(before: readonly Segment[], after: readonly Segment[]): number {
  const lastPages = new Map(before.map(({ id, lastPage }) => [id, lastPage]));
  return after.reduce((sum, { id, lastPage }) => sum + Math.max(0, lastPage - (lastPages.get(id) ?? 0)), 0);
}

/**
 * One bounded step of merging the index, which is what erases the words of deleted rows from the file. Call inside a write.
 * @param start true to merge all segments into one, false to go on with what is due
 * @param pages how many the step writes, or few more
 * @returns true while there is more to merge
 */
export function mergeText(store: Store, { start, pages }: { start: boolean; pages: number }): boolean {
  const changes = () => (store.prepare('SELECT total_changes() AS n').get() as { n: number }).n;
  const before = changes();
  store.prepare(`INSERT INTO memory_text (memory_text, rank) VALUES ('merge', ?)`).run(start ? -pages : pages);
  // The command itself counts as one change; a merge that did work shows at least one more.
  return changes() - before >= 2;
}
