/**
 * The tables of a tenant that a move copies from a file to PostgreSQL and back. Both directions use this list, and a
 * test compares it with both schemas, so that no table is forgotten.
 */

/**
 * The tables in the order in which `cairn move` copies them. A table comes after the tables that its foreign keys refer
 * to. The order also keeps triggers on inserts from changing anything: `edges` come before `standing_queries`,
 * `recalls` before `recall_total`, `standing_due` before `consolidations`, and `event_feed`, which switches the change
 * feed on, comes last.
 */
export const MOVED_TABLES: readonly string[] = [
  'store_info',
  'users',
  'memories',
  'memory_dynamics',
  'memory_revisions',
  'text_rewrites',
  'models',
  'vectors',
  'vector_codes',
  'vector_parts',
  'vector_removals',
  'cached_copies',
  'embed_logs',
  'provider_usage',
  'edges',
  'chains',
  'entities',
  'entity_mentions',
  'entity_relations',
  'calibrations',
  'documents',
  'document_generations',
  'chunks',
  'jobs',
  'reflections',
  'writers',
  'audit',
  'idempotency_keys',
  'namespaces',
  'items',
  'labels',
  'memory_labels',
  'session_logs',
  'session_log_items',
  'session_log_operations',
  'events',
  'erased_users',
  'recalls',
  'recall_candidates',
  'recall_feedback',
  'recall_total',
  'eval_sets',
  'eval_items',
  'eval_runs',
  'standing_queries',
  'standing_answers',
  'standing_vectors',
  'standing_due',
  'consolidations',
  'consolidation_sources',
  'consolidation_runs',
  'webhooks',
  'deliveries',
  'webhook_cursor',
  'erasures',
  'learned',
  'batch_receipts',
  'event_feed',
];

/**
 * Name of the table with the last row number of each table: `numbers` in PostgreSQL, `sqlite_sequence` in a file. It is
 * copied last.
 */
export const NUMBERS = 'numbers';

/**
 * Tables of a tenant in PostgreSQL whose rows are not copied, each with what creates the rows at the target instead.
 */
export const NOT_COPIED: Readonly<Record<string, string>> = {
  word_blocks: 'the words of the texts are indexed anew',
  word_rows: 'the words of the texts are indexed anew',
  word_totals: 'the words of the texts are indexed anew',
  memory_text_docsize: 'the words of the texts are indexed anew, and compared by this table',
  upload_parts: 'files beside the tenant’s file',
};

/**
 * Table with the number of terms in each column of each row of the word index; it has the same form in SQLite and
 * PostgreSQL.
 */
export const WORD_SIZES = 'memory_text_docsize';

/** A column of a table that a move copies, with its type in PostgreSQL. */
export interface MovedColumn {
  readonly name: string;
  readonly type: string;
}

/** Columns by table, without the tenant's number and without columns that the database computes. */
export type MovedColumns = ReadonlyMap<string, readonly MovedColumn[]>;
