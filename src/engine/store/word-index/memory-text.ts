import { identifiersOf } from '../../text/index-text.ts';
import { readMemoryRows, type MemoryRow } from '../memories.ts';
import type { Store } from '../open-store.ts';
import { contextOf, placeOf } from '../session-context.ts';
import { mergeWithCommit } from './merges.ts';
import { textRewrites } from './rewrites.ts';
import { indexedText, markOf } from './tokens.ts';

/**
 * How memories get into the word index and out of it. Rows are written from code, not by triggers: CJK is segmented and identifiers are
 * split before FTS5 sees them.
 */

/** The words of one memory, by column of the index. */
export interface TextRow {
  readonly seq: number;
  readonly title: string;
  readonly content: string;
  readonly gist: string;
  readonly entities: readonly string[];
  readonly tags: readonly string[];
  readonly context: string;
}

/** Writes the row of a memory, or replaces it; whoever replaces one notes it in `textRewrites`. Call inside a write. */
export function putText(store: Store, row: TextRow): void {
  mergeWithCommit(store);
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

/** Deletes the row of a memory. Its words leave the file when its segment is merged. Call inside a write. */
export function deleteText(store: Store, seq: number): void {
  mergeWithCommit(store);
  store.prepare('DELETE FROM memory_text WHERE rowid = ?').run(seq);
  textRewrites.note(store, [seq]);
}

/** Writes the rows of these memories again from what is stored, their context included. Call inside a write. */
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

/** Empties the word index. Call inside a write. */
export function clearText(store: Store): void {
  store.prepare(`INSERT INTO memory_text (memory_text) VALUES ('delete-all')`).run();
  textRewrites.note(store, [null]);
}
