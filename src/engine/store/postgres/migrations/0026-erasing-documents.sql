-- As migration 0027 of a tenant's file.
ALTER TABLE documents ADD COLUMN erasure text COLLATE "C";
ALTER TABLE erasures ADD COLUMN sliced_at bigint NOT NULL DEFAULT 0;
CREATE INDEX documents_erasing ON documents (tenant, erasure, document_no) WHERE erasure IS NOT NULL;
CREATE INDEX documents_abandoned ON documents (tenant, document_no) WHERE state = 'deleting' AND erasure IS NULL;
DROP INDEX document_generations_abandoned;
CREATE INDEX document_generations_abandoned ON document_generations (tenant, generation_no) WHERE hidden = 2;
