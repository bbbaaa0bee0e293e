-- Who wrote what: the public ids of keys, each with a small number that the rows carry. A number takes a byte or two in a
-- row, where the id would take sixteen. NULL stands for rows that were written before there were numbers, and for writes
-- that no caller asked for.
CREATE TABLE writers (
  writer_no INTEGER PRIMARY KEY,
  key_id    TEXT NOT NULL UNIQUE                      -- id of a key, not its secret; or environment, anonymous, cli
) STRICT;

-- In `memories` the column would stand behind the text, and reading it would read the text's overflow pages.
ALTER TABLE memory_dynamics ADD COLUMN writer_no INTEGER;
ALTER TABLE document_generations ADD COLUMN writer_no INTEGER;
-- The writer who made the change that replaced this version.
ALTER TABLE memory_revisions ADD COLUMN writer_no INTEGER;
CREATE INDEX memory_revisions_by_writer ON memory_revisions (writer_no, memory) WHERE writer_no > 0;
ALTER TABLE edges ADD COLUMN writer_no INTEGER;
CREATE INDEX edges_by_writer ON edges (writer_no) WHERE writer_no > 0;

-- What reinforcement added to the salience within one hour, counted from the Unix epoch. NULL for a memory that was never
-- reinforced.
ALTER TABLE memory_dynamics ADD COLUMN boost_hour INTEGER;
ALTER TABLE memory_dynamics ADD COLUMN boosted INTEGER; -- thousandths

-- What was done with the file, by whom: no content, only ids and counts. Each hash covers the hash before it, so a record
-- that was changed or taken out is noticed (store/audit-chain.ts). The first records go when they are old enough; their
-- last hash stays in `store_info`.
CREATE TABLE audit (
  audit_no INTEGER PRIMARY KEY AUTOINCREMENT,
  at       INTEGER NOT NULL,
  key_id   TEXT NOT NULL,                             -- as in `writers`; '' for what Cairn did by itself
  action   TEXT NOT NULL,
  detail   TEXT NOT NULL,                             -- JSON
  hash     BLOB NOT NULL                              -- SHA-256
) STRICT;

-- An Idempotency-Key is often made of a name or an address, and the hash of a short body confirms a guess. So both are
-- kept only as hashes keyed by a secret of this file; a tombstone keeps none of the body.
INSERT INTO store_info (key, value) VALUES ('idempotency_secret', lower(hex(randomblob(32))));
CREATE TABLE stored_replies (
  key_hash   BLOB NOT NULL,                           -- keyed hash of the Idempotency-Key
  route      TEXT NOT NULL,
  body_hash  BLOB,                                    -- keyed hash of the body's SHA-256; NULL in a tombstone
  reply      TEXT,                                    -- NULL in a tombstone
  first_seq  INTEGER,
  last_seq   INTEGER,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (key_hash, route)
) STRICT, WITHOUT ROWID;
INSERT INTO stored_replies
  SELECT keyed_hash(s.value, k.key), k.route,
    CASE WHEN k.reply IS NULL THEN NULL ELSE keyed_hash(s.value, k.body_hash) END,
    k.reply, k.first_seq, k.last_seq, k.created_at
  FROM idempotency_keys k JOIN store_info s ON s.key = 'idempotency_secret';
-- The text of the keys is in freed pages and in the log until the maintenance has cleaned both.
INSERT INTO store_info (key, value)
  SELECT 'erase_pending', CAST(max(created_at) AS TEXT) FROM idempotency_keys HAVING count(*) > 0
  ON CONFLICT (key) DO NOTHING;
DROP TABLE idempotency_keys;
ALTER TABLE stored_replies RENAME TO idempotency_keys;
CREATE INDEX idempotency_by_time ON idempotency_keys (created_at);
CREATE INDEX idempotency_by_memory ON idempotency_keys (last_seq, first_seq);
