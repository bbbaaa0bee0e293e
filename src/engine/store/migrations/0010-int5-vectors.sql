-- Vectors of the offline embedder in 5 bits a dimension in place of 8, their sign bits first, so that an index reads these from here and
-- not from vector_codes: 510 bytes a vector of 768 dimensions in place of 930. Read for an index, a row says whose it is and what for.
CREATE TABLE vectors_anew (
  vector_no INTEGER PRIMARY KEY AUTOINCREMENT,
  memory    INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  user_no   INTEGER NOT NULL,                         -- of the memory
  model_no  INTEGER NOT NULL,
  window_no INTEGER NOT NULL,
  role      INTEGER NOT NULL,                         -- 0 whole: both; 1 window: ranked, not linked; 2 mean: linked, not ranked
  sector    TEXT NOT NULL DEFAULT '',
  text_hash BLOB,                                     -- key in embedding_cache, NULL for an embedder that is not cached
  embedding BLOB NOT NULL                             -- last, so that the others are read without it
) STRICT;

INSERT INTO vectors_anew (vector_no, memory, user_no, model_no, window_no, role, sector, text_hash, embedding)
SELECT v.vector_no, v.memory, m.user_no, v.model_no, v.window_no,
  CASE WHEN v.window_no = -1 THEN 2
       WHEN EXISTS (SELECT 1 FROM vectors mean WHERE mean.memory = v.memory AND mean.model_no = v.model_no
                      AND mean.sector = v.sector AND mean.window_no = -1) THEN 1
       ELSE 0 END,
  v.sector, v.text_hash, iif(o.encoding = 'int8', int5_of_int8(v.embedding), v.embedding)
FROM vectors v JOIN memories m ON m.seq = v.memory JOIN models o ON o.model_no = v.model_no
ORDER BY v.vector_no;

-- Numbers are never given twice, also where the last rows were removed.
INSERT INTO sqlite_sequence (name, seq)
SELECT 'vectors_anew', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'vectors_anew');
UPDATE sqlite_sequence SET seq = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'vectors'), 0) WHERE name = 'vectors_anew';

DROP TABLE vectors;
ALTER TABLE vectors_anew RENAME TO vectors;
CREATE UNIQUE INDEX vectors_by_memory ON vectors (memory, model_no, sector, window_no);

DELETE FROM vector_codes WHERE model_no IN (SELECT model_no FROM models WHERE encoding = 'int8');
UPDATE embedding_cache SET embedding = int5_of_int8(embedding)
WHERE model_no IN (SELECT model_no FROM models WHERE encoding = 'int8');
UPDATE models SET encoding = 'int5' WHERE encoding = 'int8';
