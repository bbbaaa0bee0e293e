/**
 * Statements that undo what the migrations of PostgreSQL after the 20th made, for tests that run an older migration
 * again. Whoever adds a migration adds what undoes it here.
 */
export const UNDO_FROM_0021 = `DROP INDEX edges_by_src_weight, edges_by_dst_weight, entity_relations_by_dst;
  CREATE INDEX edges_by_src_weight ON edges (tenant, src, weight DESC);
  CREATE INDEX edges_by_dst_weight ON edges (tenant, dst, weight DESC);
  CREATE INDEX entity_relations_by_dst ON entity_relations (tenant, dst);
  ALTER TABLE namespaces DROP COLUMN path_order;
  CREATE INDEX namespaces_by_labels_of_all ON namespaces (tenant, replace(path, '.', chr(1)), user_no);
  CREATE UNIQUE INDEX namespaces_by_labels ON namespaces (tenant, user_no, replace(path, '.', chr(1)));
  ALTER TABLE tenants DROP COLUMN last_write;
  ALTER TABLE documents DROP COLUMN erasure;
  ALTER TABLE erasures DROP COLUMN sliced_at;
  DROP INDEX document_generations_abandoned;
  CREATE INDEX document_generations_abandoned ON document_generations (tenant, generation_no) WHERE hidden > 1;
  ALTER TABLE document_generations DROP COLUMN nameless_of;
  DROP INDEX documents_nameless_by_url;
  CREATE INDEX documents_by_url ON documents (tenant, url, user_id) WHERE url <> '';
  CREATE INDEX document_generations_by_url ON document_generations (tenant, url) WHERE url <> '';
  ALTER TABLE word_totals DROP COLUMN joining, DROP COLUMN joining_terms;
  DROP INDEX edges_lost, edges_superseding, memory_revisions_status, memory_revisions_ends, session_logs_by_session;
  DROP FUNCTION ledger_statuses, ledger_batches, ledger_marks`;
