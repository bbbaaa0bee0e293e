-- A generation that its document does not refer to any more, and that must be erased, has 2 in the column `hidden`: it
-- is found among any number of those that wait to be read or could not be read, which have 1.
UPDATE document_generations SET hidden = 2
  WHERE hidden > 0 AND NOT EXISTS (SELECT 1 FROM documents o WHERE o.document_no = document_generations.document_no
    AND document_generations.generation_no IN (o.live_no, o.next_no));
CREATE INDEX document_generations_abandoned ON document_generations (generation_no) WHERE hidden > 1;
DROP INDEX document_generations_hidden;
