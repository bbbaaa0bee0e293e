-- A tenant's whole world. No table names a tenant: the file is the tenant.
-- Times are Unix milliseconds. `seq` is the row's small number inside the file; `id` is what clients see.

CREATE TABLE store_info (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- user_id is a namespace; '' (number 0) is "no user". A small number keeps every index and the vector index narrow.
CREATE TABLE users (
  user_no  INTEGER PRIMARY KEY,
  user_id  TEXT NOT NULL UNIQUE,
  memories INTEGER NOT NULL DEFAULT 0               -- how many there are, so that a query need not count to choose its plan
) STRICT;
INSERT INTO users (user_no, user_id) VALUES (0, '');

-- What was said: written at the add, changed only by PATCH. The long columns come last, so that a filter on the short
-- ones never walks their overflow pages. AUTOINCREMENT: a number is never given twice, so late work for a deleted
-- memory cannot land on another.
CREATE TABLE memories (
  seq              INTEGER PRIMARY KEY AUTOINCREMENT,
  id               TEXT NOT NULL UNIQUE,            -- UUIDv7
  user_no          INTEGER NOT NULL,
  session_id       TEXT NOT NULL DEFAULT '',
  event_time       INTEGER NOT NULL,                -- when it happened: as given, else created_at
  event_time_given INTEGER NOT NULL,                -- 1 if the caller gave it; exact duplicates compare only given times
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  valid_from       INTEGER,
  valid_to         INTEGER,                         -- half-open: valid while valid_from <= t < valid_to
  expires_at       INTEGER,                         -- hidden from then on, erased by the expiry job
  version          INTEGER NOT NULL DEFAULT 1,
  confidence       REAL NOT NULL DEFAULT 1,
  importance       REAL,                            -- 0..1 as given; sets the initial salience
  type             TEXT,
  external_id      TEXT,
  content_hash     BLOB NOT NULL,                   -- 16 bytes of SHA-256 of the normalised content
  tags             TEXT NOT NULL DEFAULT '[]',      -- JSON array of strings
  files            TEXT NOT NULL DEFAULT '[]',
  entities         TEXT NOT NULL DEFAULT '[]',      -- as given; else read off the text when asked for
  title            TEXT NOT NULL DEFAULT '',
  gist             TEXT NOT NULL DEFAULT '',        -- likewise
  metadata         TEXT NOT NULL DEFAULT '{}',      -- JSON object
  content          TEXT NOT NULL                    -- verbatim
) STRICT;
-- By session first, so that one conversation writes to one page of the index rather than to a random one an add.
CREATE INDEX memories_by_hash    ON memories (user_no, session_id, content_hash);
CREATE INDEX memories_by_session ON memories (user_no, session_id, event_time, seq);
-- A user's memories in time, whatever the session: a timeline of one with 100,000 takes 0.2 ms, 25 ms and more without. Costs 23 bytes and
-- about a microsecond an add.
CREATE INDEX memories_by_time    ON memories (user_no, event_time, seq);
-- A partial index over `x IS NOT NULL` makes SQLite prepare every statement on the table again at each binding, since a bound value
-- might prove the condition: 30 microseconds a statement. These conditions are stated so that no parameter can.
CREATE INDEX memories_by_external ON memories (external_id, user_no) WHERE external_id <> '';
CREATE INDEX memories_by_expiry  ON memories (expires_at) WHERE expires_at > 0;

-- What changes without the text changing. Apart from `memories`, so that recall and decay rewrite some 60 bytes a memory
-- rather than its whole row with the text.
CREATE TABLE memory_dynamics (
  seq               INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  state             TEXT NOT NULL DEFAULT 'queued',   -- queued, ready, failed
  status            TEXT NOT NULL DEFAULT 'active',   -- active, superseded, contradicted, archived
  primary_sector    TEXT NOT NULL DEFAULT 'semantic',
  sectors           INTEGER NOT NULL DEFAULT 0,       -- bit i = SECTORS[i], the primary one included
  sector_confidence REAL NOT NULL DEFAULT 0,
  salience          REAL NOT NULL,                    -- value at the anchor salience_at
  salience_at       INTEGER NOT NULL,
  salience_now      REAL NOT NULL,                    -- cache of the daily job, never a source
  decay_lambda      REAL NOT NULL,                    -- per day
  strength          REAL NOT NULL DEFAULT 1,
  strength_at       INTEGER NOT NULL,
  access_count      INTEGER NOT NULL DEFAULT 0,
  last_seen_at      INTEGER NOT NULL,
  chain_no          INTEGER                           -- of those that supersede each other; NULL where none does
) STRICT;
CREATE INDEX memory_dynamics_unready ON memory_dynamics (seq) WHERE state <> 'ready';

-- With a rowid: a search that runs along a WITHOUT ROWID table reads every row of it whole, snapshot included.
CREATE TABLE memory_revisions (
  memory   INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  version  INTEGER NOT NULL,                          -- the version this row held before it was replaced
  replaced_at INTEGER NOT NULL,                       -- never falls from a version to the next
  fields   TEXT NOT NULL,                             -- names of the replaced fields, with commas between
  by_link  INTEGER NOT NULL,                          -- 1 where a link that came or went changed it
  status   TEXT NOT NULL,                             -- this and the next three as that version had them, replaced or not:
  event_time INTEGER NOT NULL,                        -- a look back asks for them of every candidate and must not parse texts
  valid_from INTEGER,
  valid_to INTEGER,
  snapshot TEXT NOT NULL,                             -- JSON of the replaced fields
  PRIMARY KEY (memory, version)
) STRICT;

-- Words. Contentless: the text stands once, in `memories`; rows are written and replaced from code (store/text.ts), since
-- CJK is segmented and identifiers are split there. `contentless_delete` makes DELETE and REPLACE safe without old text.
CREATE VIRTUAL TABLE memory_text USING fts5 (
  title, content, gist, entities, tags,
  identifiers,                                        -- whole and split identifiers, marked so that nothing stems them
  context,                                            -- the two preceding memories of the session, <= 1,000 characters
  content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE models (
  model_no   INTEGER PRIMARY KEY,
  provider   TEXT NOT NULL,
  model      TEXT NOT NULL,
  dimensions INTEGER NOT NULL,
  encoding   TEXT NOT NULL,                           -- int8 or float32
  created_at INTEGER NOT NULL,
  UNIQUE (provider, model, dimensions, encoding)
) STRICT;

-- Canonical vectors; every index is derived from them. window_no: 0.. for windows of the text in order, -1 for the
-- normalised mean of several windows. A text of one window has only window 0, which is its own mean.
-- sector '' where all sectors share the model and the text.
CREATE TABLE vectors (
  vector_no INTEGER PRIMARY KEY AUTOINCREMENT,
  memory    INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  model_no  INTEGER NOT NULL,
  window_no INTEGER NOT NULL,
  sector    TEXT NOT NULL DEFAULT '',
  text_hash BLOB,                                     -- key in embedding_cache, NULL for an embedder that is not cached
  embedding BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX vectors_by_memory ON vectors (memory, model_no, sector, window_no);

CREATE TABLE embedding_cache (
  model_no   INTEGER NOT NULL,
  text_hash  BLOB NOT NULL,
  embedding  BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (model_no, text_hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE embed_logs (
  log_no     INTEGER PRIMARY KEY,
  at         INTEGER NOT NULL,
  provider   TEXT NOT NULL,
  model      TEXT NOT NULL,
  purpose    TEXT NOT NULL,                           -- document or query
  texts      INTEGER NOT NULL,
  tokens     INTEGER NOT NULL,                        -- as billed, else estimated
  ms         REAL NOT NULL,
  status     TEXT NOT NULL,                           -- completed or failed
  error_code TEXT,
  error      TEXT
) STRICT;
CREATE INDEX embed_logs_by_time ON embed_logs (at);

CREATE TABLE edges (
  src        INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  dst        INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  type       TEXT NOT NULL,
  similarity REAL,                                    -- as measured; NULL for an edge someone stated
  weight     REAL NOT NULL,                           -- 0..1, what recall reinforces
  automatic  INTEGER NOT NULL,                        -- 1 for the waypoint the link step chose
  winner     INTEGER,                                 -- contradicts: which of the two was said to be right, by seq; NULL while open
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (src, dst, type)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_by_dst ON edges (dst, type);
-- The strongest links of a hub without reading all of them.
CREATE INDEX edges_by_src_weight ON edges (src, weight DESC);
CREATE INDEX edges_by_dst_weight ON edges (dst, weight DESC);
CREATE UNIQUE INDEX edges_one_waypoint ON edges (src) WHERE type = 'waypoint' AND automatic = 1;

-- Where chains of supersessions lead. A number stands in memory_dynamics for every memory of the chain.
CREATE TABLE chains (
  chain_no INTEGER PRIMARY KEY AUTOINCREMENT,
  live_end INTEGER NOT NULL                           -- the memory that nothing supersedes; the writer keeps it true
) STRICT;

-- The knowledge graph of names in memories. A row here lives as long as a memory mentions it. Each user has a graph of their own:
-- what one states must not lead another anywhere.
CREATE TABLE entities (
  entity_no INTEGER PRIMARY KEY,
  user_no   INTEGER NOT NULL,
  name      TEXT NOT NULL,                            -- folded, as it is looked up
  label     TEXT NOT NULL,                            -- as the first memory writes it that still mentions it
  type      TEXT NOT NULL,                            -- one of the mode's
  mentions  INTEGER NOT NULL,                         -- how many memories, so that a hub is known without counting
  UNIQUE (name, user_no)
) STRICT;

CREATE TABLE entity_mentions (
  entity_no INTEGER NOT NULL REFERENCES entities (entity_no) ON DELETE CASCADE,
  memory    INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  label     TEXT NOT NULL,                            -- as it writes the name: the spelling goes with it
  type      TEXT NOT NULL,
  PRIMARY KEY (entity_no, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX entity_mentions_by_memory ON entity_mentions (memory);

-- A relation as one memory states it.
CREATE TABLE entity_relations (
  src      INTEGER NOT NULL REFERENCES entities (entity_no) ON DELETE CASCADE,
  dst      INTEGER NOT NULL REFERENCES entities (entity_no) ON DELETE CASCADE,
  relation TEXT NOT NULL,                             -- one of the mode's
  memory   INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  PRIMARY KEY (src, dst, relation, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX entity_relations_by_dst ON entity_relations (dst);
CREATE INDEX entity_relations_by_memory ON entity_relations (memory);

-- What raw fits mean here, fitted on unrelated pairs of the file's own memories; model 0 stands for words alone.
CREATE TABLE calibrations (
  model_no   INTEGER PRIMARY KEY,
  fitted_at  INTEGER NOT NULL,
  memories   INTEGER NOT NULL,                        -- how many there were when it was fitted
  parameters TEXT NOT NULL                            -- JSON
) STRICT;

-- The ledger: what work is owed. A row holds its next step; a lease is (owner, until, epoch) and every commit of a step
-- checks the epoch. Done rows stay for a while so that their state can be asked for.
CREATE TABLE jobs (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  id             TEXT NOT NULL UNIQUE,                -- UUIDv7
  kind           TEXT NOT NULL,                       -- memory
  memory         INTEGER,                             -- seq; no foreign key, a deleted memory cancels its jobs
  step           TEXT NOT NULL,                       -- encode, link, done
  state          TEXT NOT NULL,                       -- queued, active, failed (waits for its next attempt), done, dead, cancelled
  priority       INTEGER NOT NULL DEFAULT 0,          -- 0 interactive, 1 bulk
  attempts       INTEGER NOT NULL DEFAULT 0,          -- of the current step, failures only
  crashes        INTEGER NOT NULL DEFAULT 0,          -- while it ran alone
  suspect        INTEGER NOT NULL DEFAULT 0,          -- was in flight at a crash: runs alone next time
  run_at         INTEGER NOT NULL,
  lease_owner    TEXT,
  lease_until    INTEGER,
  lease_epoch    INTEGER NOT NULL DEFAULT 0,
  lease_alone    INTEGER NOT NULL DEFAULT 0,
  dispatches     INTEGER NOT NULL DEFAULT 0,          -- how often a queue was told of it
  dispatched_until INTEGER NOT NULL DEFAULT 0,        -- a queue knows it until then; 0 once it was claimed
  error_code     TEXT,
  error          TEXT,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  finished_at    INTEGER,
  timeline       TEXT NOT NULL                        -- JSON pairs without the outer brackets: ["queued",at],["encoded",at]
) STRICT;
-- The trailing `state` lets jobs be counted on the indexes alone.
CREATE INDEX jobs_due      ON jobs (step, suspect, priority, run_at, seq, state) WHERE state IN ('queued', 'failed');
CREATE INDEX jobs_leased   ON jobs (lease_until) WHERE state = 'active';
CREATE INDEX jobs_by_memory ON jobs (memory);
CREATE INDEX jobs_by_end   ON jobs (state, finished_at) WHERE finished_at > 0;

-- Replies kept under an Idempotency-Key. They hold ids, never content. When a memory of the reply is deleted the row stays
-- as a tombstone (reply NULL), so that a late retry of the add cannot bring the memory back.
CREATE TABLE idempotency_keys (
  key        TEXT NOT NULL,
  route      TEXT NOT NULL,
  body_hash  BLOB NOT NULL,
  reply      TEXT,
  first_seq  INTEGER,
  last_seq   INTEGER,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (key, route)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_time ON idempotency_keys (created_at);
CREATE INDEX idempotency_by_memory ON idempotency_keys (last_seq, first_seq);
