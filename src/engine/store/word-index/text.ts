import { identifiersOf } from '../../text/index-text.ts';
import { openChangeLog } from '../change-log.ts';
import { readMemoryRows, type MemoryRow } from '../memories.ts';
import { totalChanges, type Store } from '../open-store.ts';
import { readLevels, readSegments, type Segment } from './segments.ts';
import { indexedText, markOf } from './tokens.ts';

/** The full-text rows. They are written from code: CJK is segmented and identifiers are split before FTS5 sees them. */

export const CONTEXT_MEMORIES = 2;
const CONTEXT_CHARACTERS = 1_000;

export interface TextRow {
  readonly seq: number;
  readonly title: string;
  readonly content: string;
  readonly gist: string;
  readonly entities: readonly string[];
  readonly tags: readonly string[];
  readonly context: string;
}

export function putText(store: Store, row: TextRow): void {
  noteWrite(store);
  const mark = markOf(row.seq);
  store
    .prepare(
      `INSERT OR REPLACE INTO memory_text (rowid, context, title, content, gist, entities, tags, identifiers)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      row.seq,
      indexedText(row.context, mark),
      indexedText(row.title, mark),
      indexedText(row.content, mark),
      indexedText(row.gist, mark),
      indexedText(row.entities.join('\n'), mark),
      indexedText(row.tags.join('\n'), mark),
      indexedText(identifiersOf(row.title === '' ? row.content : `${row.title}\n${row.content}`), mark),
    );
}

export function deleteText(store: Store, seq: number): void {
  noteWrite(store);
  store.prepare('DELETE FROM memory_text WHERE rowid = ?').run(seq);
  textRewrites.note(store, [seq]);
}

/** Rows that stood there already and were replaced or deleted; later ones have a higher number than all that are known. */
export const textRewrites = openChangeLog('text_rewrites', 'rewrite_no', 'memory');

/**
 * Where a memory stands among those of its user and session. Chunks of documents stand apart: they overlap, so that each holds its
 * own context, and what is hidden must not show in the words of others.
 */
export interface SessionPlace {
  readonly seq: number;
  readonly isChunk: boolean;
  readonly userNo: number;
  readonly sessionId: string;
  readonly eventTime: number;
}

/** The texts just before a memory in its session, oldest first, cut to their last 1,000 characters; '' outside a session. */
export function contextOf(store: Store, place: SessionPlace): string {
  if (place.sessionId === '' || place.isChunk) return '';
  const before = store
    .prepare(
      `SELECT m.content FROM memories m INDEXED BY memories_by_session CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.user_no = ? AND m.session_id = ? AND (m.event_time, m.seq) < (?, ?) AND d.generation_no IS NULL
       ORDER BY m.event_time DESC, m.seq DESC LIMIT ${CONTEXT_MEMORIES}`,
    )
    .all(place.userNo, place.sessionId, place.eventTime, place.seq) as { content: string }[];
  return before
    .map((row) => row.content)
    .reverse()
    .join('\n')
    .slice(-CONTEXT_CHARACTERS)
    .toWellFormed();
}

/** The memories whose context this one is part of. */
export function successorsOf(store: Store, place: SessionPlace): number[] {
  if (place.sessionId === '' || place.isChunk) return [];
  const rows = store
    .prepare(
      `SELECT m.seq FROM memories m INDEXED BY memories_by_session CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.user_no = ? AND m.session_id = ? AND (m.event_time, m.seq) > (?, ?) AND d.generation_no IS NULL
       ORDER BY m.event_time, m.seq LIMIT ${CONTEXT_MEMORIES}`,
    )
    .all(place.userNo, place.sessionId, place.eventTime, place.seq) as { seq: number }[];
  return rows.map((row) => row.seq);
}

/** Writes the rows of these memories again from what is stored, their context included. */
export function reindexText(store: Store, seqs: readonly number[]): void {
  if (seqs.length === 0) return;
  for (const row of readMemoryRows(store, seqs)) putText(store, textRowOf(store, row));
  textRewrites.note(store, seqs);
}

function textRowOf(store: Store, row: MemoryRow): TextRow {
  return {
    seq: row.seq,
    title: row.title,
    content: row.content,
    gist: row.gist,
    entities: JSON.parse(row.entities) as string[],
    tags: JSON.parse(row.tags) as string[],
    context: contextOf(store, placeOf(row)),
  };
}

export function placeOf(row: MemoryRow): SessionPlace {
  const { seq, user_no: userNo, session_id: sessionId, event_time: eventTime } = row;
  return { seq, userNo, sessionId, eventTime, isChunk: row.generation_no !== null };
}

/**
 * One bounded step of merging the index, which is what erases the words of deleted rows from the file.
 * @returns true while there is more to merge
 */
export function mergeText(store: Store, { start, pages }: { start: boolean; pages: number }): boolean {
  const before = totalChanges(store);
  store.prepare(`INSERT INTO memory_text (memory_text, rank) VALUES ('merge', ?)`).run(start ? -pages : pages);
  // The command itself counts as one change; a merge that did work shows at least one more.
  return totalChanges(store) - before >= 2;
}

/** Fewer pages are not merged at once, since each step leaves a page half empty. */
const MERGED_LEAST = 64;
/** A commit that writes little makes up for so many pages of others: some 4 ms. */
const MERGED_MOST = 128;
/** After a step that took longer than it was to, so many commits of the kind merge nothing; after more the new segments would be too many. */
const SPARED_MOST = 4;

interface Writing {
  readonly transactionNo: number | undefined;
  /** The new segments that there were before it. */
  readonly segments: ReadonlySet<string>;
}

/** The last transaction of a connection that wrote to the index. */
const writings = new WeakMap<Store, Writing>();
/** Pages that have yet to be merged for what was written on a connection; below 0 where more was merged. */
const owedPages = new WeakMap<Store, number>();

/** Before the first row of a transaction: FTS5 writes a segment for each MB of rows, and none where rows are only deleted. */
function noteWrite(store: Store): void {
  const { transactionNo } = store;
  if (writings.get(store)?.transactionNo === transactionNo) return;
  writings.set(store, { transactionNo, segments: new Set((readLevels(store)[0] ?? []).map(nameOf)) });
  store.beforeCommit(mergeAsWritten);
}

/** A number is given again when its segment was merged, seldom to one of as many pages; merges and deletes leave the last page as it is. */
function nameOf({ id, lastPage }: Segment): string {
  return `${id}.${lastPage}`;
}

/**
 * Merges for each page that a commit wrote to the index as many pages as there are levels, which keeps the number of segments down. FTS5 does as
 * much by itself (`automerge`), but 64 pages a level at a time: of commits of 100 memories every fifth took three times as long as the others. What
 * cannot be divided is a word of one partition (tokens.ts), so that a step writes more than it is told to: the most common one of short memories takes 300 pages.
 */
function mergeAsWritten(store: Store): void {
  mergeText(store, { start: false, pages: 0 }); // FTS5 writes what it has held back.
  const levels = readLevels(store);
  const { segments } = writings.get(store)!;
  const written = (levels[0] ?? []).filter((segment) => !segments.has(nameOf(segment)));
  if (written.length === 0) return;
  const owedNow = levels.length * written.reduce((sum, { firstPage, lastPage }) => sum + lastPage - firstPage + 1, 0);
  const owed = (owedPages.get(store) ?? 0) + owedNow;
  if (owed < MERGED_LEAST) return void owedPages.set(store, owed);
  const isMerged = !mergeText(store, { start: false, pages: Math.min(owed, Math.max(MERGED_MOST, owedNow)) });
  const left = isMerged ? 0 : owed - pagesWritten(levels.flat(), readSegments(store));
  owedPages.set(store, Math.max(left, -SPARED_MOST * owedNow));
}

/** Between two looks at the index. */
function pagesWritten(before: readonly Segment[], after: readonly Segment[]): number {
  const lastPages = new Map(before.map(({ id, lastPage }) => [id, lastPage]));
  return after.reduce((sum, { id, lastPage }) => sum + Math.max(0, lastPage - (lastPages.get(id) ?? 0)), 0);
}

export function clearText(store: Store): void {
  store.prepare(`INSERT INTO memory_text (memory_text) VALUES ('delete-all')`).run();
  textRewrites.note(store, [null]);
}
