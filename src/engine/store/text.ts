import { identifiersOf, indexableText } from '../text/index-text.ts';
import { openChangeLog } from './change-log.ts';
import { readMemoryRows, type MemoryRow } from './memories.ts';
import type { Store } from './open-store.ts';

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
  store
    .prepare(
      `INSERT OR REPLACE INTO memory_text (rowid, context, title, content, gist, entities, tags, identifiers)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      row.seq,
      indexableText(row.context),
      indexableText(row.title),
      indexableText(row.content),
      indexableText(row.gist),
      indexableText(row.entities.join('\n')),
      indexableText(row.tags.join('\n')),
      identifiersOf(row.title === '' ? row.content : `${row.title}\n${row.content}`),
    );
}

export function deleteText(store: Store, seq: number): void {
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
  const changes = () => (store.prepare('SELECT total_changes() AS n').get() as { n: number }).n;
  const before = changes();
  store.prepare(`INSERT INTO memory_text (memory_text, rank) VALUES ('merge', ?)`).run(start ? -pages : pages);
  // The command itself counts as one change; a merge that did work shows at least one more.
  return changes() - before >= 2;
}

export function clearText(store: Store): void {
  store.prepare(`INSERT INTO memory_text (memory_text) VALUES ('delete-all')`).run();
  textRewrites.note(store, [null]);
}
