-- As migration 0026 of a tenant's file.
ALTER TABLE document_generations ADD COLUMN nameless_of text COLLATE "C";
UPDATE document_generations g SET nameless_of = o.user_id
  FROM documents o WHERE o.tenant = g.tenant AND o.document_no = g.document_no AND o.external_id = '';
CREATE INDEX document_generations_nameless_by_hash
  ON document_generations (tenant, nameless_of, file_hash, session_id) WHERE nameless_of IS NOT NULL;
CREATE INDEX document_generations_nameless_by_url ON document_generations (tenant, nameless_of, url)
  WHERE nameless_of IS NOT NULL AND url <> '';
CREATE INDEX documents_nameless_by_url ON documents (tenant, user_id, url) WHERE external_id = '' AND url <> '';
DROP INDEX document_generations_by_url;
DROP INDEX documents_by_url;
