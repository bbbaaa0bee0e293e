-- A document that a delete with a receipt has hidden is left to this delete, which records what it erases: its
-- generations have 3 in the column `hidden`, and only what nobody else erases has 2.
ALTER TABLE documents ADD COLUMN erasure TEXT;                          -- id in `erasures`; NULL if no delete is at it
ALTER TABLE erasures ADD COLUMN sliced_at INTEGER NOT NULL DEFAULT 0;   -- time of the last commit of the delete
CREATE INDEX documents_erasing ON documents (erasure, document_no) WHERE erasure IS NOT NULL;
CREATE INDEX documents_abandoned ON documents (document_no) WHERE state = 'deleting' AND erasure IS NULL;
DROP INDEX document_generations_abandoned;
CREATE INDEX document_generations_abandoned ON document_generations (generation_no) WHERE hidden = 2;
