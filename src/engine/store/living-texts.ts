/**
 * Reads all texts that a tenant's file still stores intentionally. The check for remains of erased texts ignores words
 * that are in these texts.
 */

import { readingsOfJson } from '../text/erased-words.ts';
import type { Store } from './open-store.ts';

/** SQL statements that read the texts which a file stores intentionally; each row has one column. */
const TEXTS = [
  `SELECT content || char(10) || title || char(10) || gist || char(10) || session_id || char(10) ||
     coalesce(external_id, '') || char(10) || coalesce(type, '') FROM memories`,
  'SELECT user_id FROM users',
  'SELECT path FROM namespaces',
  'SELECT item_key FROM items',
  `SELECT url || char(10) || external_id || char(10) || user_id || char(10) || session_id FROM documents`,
  `SELECT file_name || char(10) || given_title || char(10) || title || char(10) || session_id || char(10) ||
     coalesce(type, '') FROM document_generations`,
  'SELECT user_id || char(10) || session_id FROM session_logs WHERE user_id IS NOT NULL',
  'SELECT query FROM standing_queries',
  // The words of Cairn itself stand in every file.
  'SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL',
  'SELECT DISTINCT action FROM audit',
  'SELECT detail FROM erasures',
];

/** SQL statements that read the JSON which a file stores intentionally; each row has one column. */
const JSON_TEXTS = [
  `SELECT entities || char(10) || tags || char(10) || files || char(10) || metadata || char(10) || coalesce(value, '')
     FROM memories`,
  'SELECT snapshot FROM memory_revisions',
  `SELECT authors || char(10) || tags || char(10) || metadata FROM document_generations`,
  'SELECT item FROM session_log_items',
  'SELECT given FROM standing_queries',
  'SELECT item FROM eval_items',
];

/**
 * Iterates over the texts that the file stores intentionally: those of memories with their earlier versions, names of
 * items, users, documents, session logs, standing queries and evaluation items, and Cairn's own (schema, audit actions,
 * receipts of deletes). Each text joins columns of one row by line feeds; JSON is read as `readingsOfJson` does.
 * Questions in the recall log are not included.
 */
export function* livingTexts(store: Store): Iterable<string> {
  for (const sql of TEXTS) yield* columnOf(store, sql);
  for (const sql of JSON_TEXTS) for (const json of columnOf(store, sql)) yield* readingsOfJson(json);
}

function* columnOf(store: Store, sql: string): Iterable<string> {
  for (const text of store.prepare(sql).pluck().iterate()) if (typeof text === 'string') yield text;
}

/**
 * Iterates over the terms of the word index, including terms of erased memories that are not removed by a merge yet.
 */
export function* indexTerms(store: Store): Iterable<string> {
  store.prepare(`CREATE VIRTUAL TABLE IF NOT EXISTS temp.erased_terms USING fts5vocab(main, memory_text, row)`).run();
  yield* store.prepare('SELECT term FROM temp.erased_terms').pluck().iterate() as IterableIterator<string>;
}
