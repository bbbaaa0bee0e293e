-- What became of each item of a batch, in parts of it. No text is kept and no hash of one.
CREATE TABLE batch_receipts (
  id         TEXT NOT NULL,                           -- UUIDv7 of the receipt
  first_item INTEGER NOT NULL,                        -- number of the part's first item, from 1
  key_id     TEXT NOT NULL,                           -- public id of the key that sent the batch; '' for none
  created_at INTEGER NOT NULL,
  items      TEXT NOT NULL,                           -- JSON: [item, fate, memory, version, characters, code, message]
  PRIMARY KEY (id, first_item)
) STRICT, WITHOUT ROWID;
CREATE INDEX batch_receipts_by_age ON batch_receipts (created_at);

-- Vectors of standing queries by the live model of a provider. The offline embedder needs none: its vectors are made of
-- the words by which queries are found anyway.
CREATE TABLE standing_vectors (
  query_no  INTEGER PRIMARY KEY REFERENCES standing_queries (query_no) ON DELETE CASCADE,
  model_no  INTEGER NOT NULL,
  embedding BLOB NOT NULL                             -- float32
) STRICT;
CREATE INDEX standing_vectors_by_model ON standing_vectors (model_no);
