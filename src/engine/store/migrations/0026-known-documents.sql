-- A document without an external id is found by what it was read from, among those of its user. Any number of documents
-- may share a URL or the bytes of a file, so user and external id must be in the index, which holds readings.
ALTER TABLE document_generations ADD COLUMN nameless_of TEXT; -- user of the document; NULL if it has an external id
UPDATE document_generations SET nameless_of =
  (SELECT o.user_id FROM documents o WHERE o.document_no = document_generations.document_no AND o.external_id = '');
CREATE INDEX document_generations_nameless_by_hash ON document_generations (nameless_of, file_hash, session_id)
  WHERE nameless_of IS NOT NULL;
CREATE INDEX document_generations_nameless_by_url ON document_generations (nameless_of, url)
  WHERE nameless_of IS NOT NULL AND url <> '';
CREATE INDEX documents_nameless_by_url ON documents (user_id, url) WHERE external_id = '' AND url <> '';
DROP INDEX document_generations_by_url;
DROP INDEX documents_by_url;
