-- Bytes of providers' vectors, in parts that fill pages (store/vector-parts.ts). Vectors that an earlier version stored
-- in `vectors.embedding` move here in the background.
CREATE TABLE vector_parts (
  part_no INTEGER PRIMARY KEY,                        -- 32 for each vector, from 32 times its number on
  bytes   BLOB NOT NULL
) STRICT;

-- Form of a vector: 0 as `models.encoding` says, in `embedding`; otherwise in `vector_parts`, and `embedding` is empty:
-- 1 float32, 2 float16, 3 int8. A file may hold all of them, each vector in the precision that was set when it came.
ALTER TABLE vectors ADD COLUMN precision INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER vectors_lose_parts AFTER DELETE ON vectors WHEN OLD.precision <> 0 BEGIN
  DELETE FROM vector_parts WHERE part_no >= 32 * OLD.vector_no AND part_no < 32 * (OLD.vector_no + 1);
END;

-- The cache of embeddings: a stored vector serves every text that is equal to its own. The condition, which every search
-- repeats, leaves out vectors of embedders that cost nothing; `memories_by_external` says why it is not `IS NOT NULL`.
CREATE INDEX vectors_by_text ON vectors (text_hash, model_no) WHERE text_hash <> '';

-- Copies of vectors, which the cache consisted of. They are deleted in the background.
DROP INDEX embedding_cache_by_time;
ALTER TABLE embedding_cache RENAME TO cached_copies;
