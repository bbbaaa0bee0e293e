-- What the vector index keeps in memory of each vector, so that it is read at a start without the vectors themselves: 110 bytes
-- in place of 800 to 3,100. Derived from vectors; cairn rebuild-index makes it again.
CREATE TABLE vector_codes (
  vector_no INTEGER PRIMARY KEY,                      -- vectors.vector_no, never given twice
  model_no  INTEGER NOT NULL,
  memory    INTEGER NOT NULL,                         -- memories.seq
  user_no   INTEGER NOT NULL,
  role      INTEGER NOT NULL,                         -- 0 whole: both; 1 window: ranked, not linked; 2 mean: linked, not ranked
  code      BLOB NOT NULL                             -- a sign bit a dimension
) STRICT;

-- The last removals, so that each process takes them over. A process that missed some reads all codes again.
CREATE TABLE vector_removals (
  removal_no INTEGER PRIMARY KEY AUTOINCREMENT,
  vector_no  INTEGER                                  -- NULL for all
) STRICT;

-- A process that knows nothing takes over from here.
INSERT INTO vector_removals (vector_no) VALUES (NULL);

INSERT INTO vector_codes (vector_no, model_no, memory, user_no, role, code)
SELECT v.vector_no, v.model_no, v.memory, m.user_no,
  CASE WHEN v.window_no = -1 THEN 2
       WHEN EXISTS (SELECT 1 FROM vectors mean WHERE mean.memory = v.memory AND mean.model_no = v.model_no
                      AND mean.sector = v.sector AND mean.window_no = -1) THEN 1
       ELSE 0 END,
  vec_quantize_binary(CASE o.encoding WHEN 'int8' THEN vec_int8(v.embedding) ELSE vec_f32(v.embedding) END)
FROM vectors v JOIN memories m ON m.seq = v.memory JOIN models o ON o.model_no = v.model_no
ORDER BY v.vector_no;
