-- What would spread the tenants' tables over the workers of a Citus cluster. NOT VERIFIED: nobody has run it. Read the
-- section "Citus" of postgres.md first: it names what is known to stand in the way. A test compares the list of tables
-- with the schema, and nothing else.
--
-- Run it as the owner of the tables, in the tenants' schema (not in that of the control tables), on an empty database
-- that Cairn has set up, before the first tenant is made.

-- A unique key of a distributed table needs the distribution column, so two sessions that use a new tenant for the first
-- time at the same moment could make it twice.
ALTER TABLE tenants DROP CONSTRAINT tenants_id_key;
CREATE INDEX tenants_by_id ON tenants (id);

SELECT create_distributed_table('tenants', 'tenant');
SELECT create_distributed_table('numbers', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('store_info', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('users', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('memories', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('memory_dynamics', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('memory_revisions', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('text_rewrites', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('models', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('vectors', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('vector_codes', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('vector_parts', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('vector_removals', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('cached_copies', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('embed_logs', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('provider_usage', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('edges', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('chains', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('entities', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('entity_mentions', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('entity_relations', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('calibrations', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('documents', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('document_generations', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('chunks', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('jobs', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('reflections', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('writers', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('audit', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('idempotency_keys', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('namespaces', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('items', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('labels', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('memory_labels', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('session_logs', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('session_log_items', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('session_log_operations', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('events', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('erased_users', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('recalls', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('recall_candidates', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('recall_feedback', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('recall_total', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('eval_sets', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('eval_items', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('eval_runs', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('standing_queries', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('standing_answers', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('standing_vectors', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('standing_due', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('consolidations', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('consolidation_sources', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('consolidation_runs', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('webhooks', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('deliveries', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('webhook_cursor', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('erasures', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('learned', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('batch_receipts', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('event_feed', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('word_blocks', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('word_rows', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('word_totals', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('memory_text_docsize', 'tenant', colocate_with => 'tenants');
SELECT create_distributed_table('upload_parts', 'tenant', colocate_with => 'tenants');
