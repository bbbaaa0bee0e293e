/**
 * Writes memories to the word index and deletes them from it. The rows are written by code and not by triggers, because
 * CJK text must be segmented and identifiers split before FTS5 gets them.
 */

import { parseStored } from '../stored-json.ts';
import { identifiersOf } from '../../text/index-text.ts';
import { stemTermsOf } from '../../text/language-stems.ts';
import { readMemoryRows, type MemoryRow } from '../memories.ts';
import type { Store } from '../open-store.ts';
import { contextOf, placeOf } from '../session-context.ts';
import { NON_ASCII_FACTOR } from '../text-sizes.ts';
import { mergeWithCommit } from './merges.ts';
import { textRewrites } from './rewrite-log.ts';
import { indexedTerms, indexedText, markOf } from './terms.ts';

/** Texts of one memory for the columns of the index, as the memory has them; `putText` prepares them. */
export interface TextRow {
  readonly memoryNo: number;
  readonly title: string;
  readonly content: string;
  readonly gist: string;
  readonly entities: readonly string[];
  readonly tags: readonly string[];
  /** Paths of files. Their words are in the column `tags`, and the identifiers in them in the column `identifiers`. */
  readonly files: readonly string[];
  /** Texts of the two memories before the memory in its session, as `contextOf` returns them; '' if there are none. */
  readonly context: string;
}

const COLUMNS = 'rowid, context, title, content, gist, entities, tags, identifiers';
const INSERT = `INSERT INTO memory_text (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const REPLACE = `INSERT OR REPLACE INTO memory_text (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;

/**
 * Writes the row of a memory that has none yet. Call inside a write.
 * @returns how much work the row makes for the write, as the number of bytes of ASCII text that would make as much
 *   (`workOf`)
 */
export function insertText(store: Store, row: TextRow): number {
  return writeRow(store, INSERT, row);
}

/**
 * Writes the row of a memory, in place of an earlier one. A caller that replaces a row must also log that in
 * `textRewrites`. Call inside a write.
 */
export function putText(store: Store, row: TextRow): void {
  writeRow(store, REPLACE, row);
}

/**
 * Work for the word index, in the unit of `insertText`, from which a commit takes no further item, line, memory or
 * request. A commit of this work takes 0.1 to 0.2 s, during which no other write is stored: 500 KB of ASCII text, 125
 * KB of other text, or in PostgreSQL 20,000 terms that are new to the write.
 */
export const MAX_INDEXED_BYTES = 500_000;

/** The latest write of a connection that put rows, with the work that these rows make, in the unit of `insertText`. */
interface WriteWork {
  readonly transactionNo: number | undefined;
  readonly bytes: number;
}

const works = new WeakMap<Store, WriteWork>();

/** Returns the work that all rows make which the present write has put so far, as `insertText` returns it. */
export function indexedBytes(store: Store): number {
  const work = works.get(store);
  return work !== undefined && work.transactionNo === store.transactionNo ? work.bytes : 0;
}

function writeRow(store: Store, sql: string, row: TextRow): number {
  const columns = columnsOf(row);
  let bytes = workOf(columns);
  if (store.words !== null) {
    bytes += BYTES_OF_NEW_TERM * store.words.put(row.memoryNo, columns.map(indexedTerms));
  } else {
    mergeWithCommit(store);
    const mark = markOf(row.memoryNo);
    store.prepare(sql).run(row.memoryNo, ...columns.map((text) => indexedText(text, mark)));
  }
  works.set(store, { transactionNo: store.transactionNo, bytes: indexedBytes(store) + bytes });
  return bytes;
}

/** Number of bytes for which a term counts that is new to its write in PostgreSQL, where it is a row of a table. */
const BYTES_OF_NEW_TERM = 25;

/**
 * Returns how much work texts make for the word index, as a number of bytes of ASCII text. It is estimated from their
 * length alone: FTS5 takes as long for a word that the text had before as for a new one.
 */
export function workOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => {
    const bytes = Buffer.byteLength(text);
    return sum + (bytes === text.length ? bytes : NON_ASCII_FACTOR * bytes);
  }, 0);
}

/** Returns the text of each of TEXT_COLUMNS, in their order. */
function columnsOf(row: TextRow): string[] {
  const own = ownTextOf(row);
  return [
    row.context,
    row.title,
    row.content,
    row.gist,
    row.entities.join('\n'),
    [...row.tags, ...row.files].join('\n'),
    `${identifiersOf([own, ...row.files].join('\n'))} ${stemTermsOf(own)}`,
  ];
}

/**
 * Deletes the rows of memories, and logs that in `textRewrites`. Their words disappear from the file when their
 * segments are merged. Call inside a write.
 */
export function deleteText(store: Store, ...memoryNos: readonly number[]): void {
  if (store.words === null) mergeWithCommit(store);
  for (const memoryNo of memoryNos) {
    if (store.words !== null) store.words.delete(memoryNo);
    else store.prepare('DELETE FROM memory_text WHERE rowid = ?').run(memoryNo);
  }
  textRewrites.note(store, memoryNos);
}

/**
 * Writes the rows of these memories again from the stored memories and their contexts, and logs that in `textRewrites`.
 * Unknown numbers are ignored. Call inside a write.
 */
export function reindexText(store: Store, memoryNos: readonly number[]): void {
  if (memoryNos.length === 0) return;
  for (const row of readMemoryRows(store, memoryNos)) putText(store, textRowOf(store, row));
  textRewrites.note(store, memoryNos);
}

/**
 * Indexes memories that are stored in another store of the same tenant, in a new index that nobody has read yet. Call
 * inside a write.
 * @param from store that has the memories and the other memories that their contexts are made of
 */
export function indexTextOf(store: Store, from: Store, memoryNos: readonly number[]): void {
  for (const row of readMemoryRows(from, memoryNos)) insertText(store, textRowOf(from, row));
}

/**
 * Writes the row of a memory again, as `reindexText` does, if it has words that earlier versions of Cairn did not
 * index: the stems of a language, or the paths of files. Call inside a write.
 */
export function addLeftOutWords(store: Store, memoryNo: number): void {
  const incomplete = readMemoryRows(store, [memoryNo]).filter(
    (row) => row.files !== '[]' || stemTermsOf(ownTextOf(row)) !== '',
  );
  reindexText(
    store,
    incomplete.map((row) => row.memoryNo),
  );
}

function ownTextOf({ title, content }: Pick<TextRow, 'title' | 'content'>): string {
  return title === '' ? content : `${title}\n${content}`;
}

function textRowOf(store: Store, row: MemoryRow): TextRow {
  return {
    memoryNo: row.memoryNo,
    title: row.title,
    content: row.content,
    gist: row.gist,
    entities: parseStored(row.entities) as string[],
    tags: parseStored(row.tags) as string[],
    files: parseStored(row.files) as string[],
    context: contextOf(store, placeOf(row)),
  };
}

/** Deletes every row of the word index, and logs that in `textRewrites`. Call inside a write. */
export function clearText(store: Store): void {
  if (store.words !== null) store.words.clear();
  else store.prepare(`INSERT INTO memory_text (memory_text) VALUES ('delete-all')`).run();
  textRewrites.note(store, [null]);
}
