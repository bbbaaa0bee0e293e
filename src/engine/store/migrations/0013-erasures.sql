-- Receipts of deletes. They hold no text: only hashes of what was erased, under a salt that stands in no file but is given
-- to whoever asked for the delete. A receipt is open while the slices of its delete run.
CREATE TABLE erasures (
  erasure_no INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT NOT NULL UNIQUE,                    -- UUIDv7
  kind       TEXT NOT NULL,                           -- memory, memories, document, item, namespace
  key_id     TEXT NOT NULL,                           -- public id of the key that asked; '' for none
  begun_at   INTEGER NOT NULL,
  closed_at  INTEGER,                                 -- NULL while open
  detail     TEXT NOT NULL DEFAULT '{}',              -- JSON: conditions by name, counts, what was searched
  ids        TEXT NOT NULL DEFAULT '[]',              -- JSON array: the first ids of erased memories
  words      TEXT NOT NULL DEFAULT '[]',              -- JSON arrays of hashes: the lowest ones, where there are many
  phrases    TEXT NOT NULL DEFAULT '[]',
  chain_no   INTEGER UNIQUE,                          -- place in the chain, from 1; NULL while open
  hash       BLOB                                     -- covers the hash of the receipt before it and all columns
) STRICT;
