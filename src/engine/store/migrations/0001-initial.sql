-- All data of one tenant. No table names the tenant: the file is the tenant.
-- Times are Unix milliseconds. `seq` is a row's small number inside the file; `id` is what clients see.

-- "Carn" marks a file of this line of migrations (store/tenant-file.ts).
PRAGMA application_id = 0x4361726e;

CREATE TABLE store_info (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A user_id is a namespace; '' (number 0) means "no user". The small number keeps every index narrow.
CREATE TABLE users (
  user_no  INTEGER PRIMARY KEY,
  user_id  TEXT NOT NULL UNIQUE,
  memories INTEGER NOT NULL DEFAULT 0                 -- number of the user's memories, so that no query counts them
) STRICT;
INSERT INTO users (user_no, user_id) VALUES (0, '');

-- What was said: written by an add, changed only by PATCH or with its document. The long columns come last, so that a
-- filter on the short ones never reads their overflow pages. AUTOINCREMENT: a number is never given twice, so late work
-- for a deleted memory cannot reach another memory.
CREATE TABLE memories (
  seq              INTEGER PRIMARY KEY AUTOINCREMENT,
  id               TEXT NOT NULL UNIQUE,              -- UUIDv7
  user_no          INTEGER NOT NULL,
  session_id       TEXT NOT NULL DEFAULT '',
  event_time       INTEGER NOT NULL,                  -- time of the event: as given, or else created_at
  event_time_given INTEGER NOT NULL,                  -- 1 if the caller gave it; duplicates compare given times only
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  valid_from       INTEGER,
  valid_to         INTEGER,                           -- half-open: valid while valid_from <= t < valid_to
  expires_at       INTEGER,                           -- the memory is hidden from then on; the expiry job erases it
  version          INTEGER NOT NULL DEFAULT 1,
  confidence       REAL NOT NULL DEFAULT 1,
  importance       REAL,                              -- 0..1 as given; sets the initial salience
  type             TEXT,
  external_id      TEXT,
  content_hash     BLOB NOT NULL,                     -- first 8 bytes of the SHA-256 of the normalised content
  tags             TEXT NOT NULL DEFAULT '[]',        -- JSON array of strings
  files            TEXT NOT NULL DEFAULT '[]',        -- JSON array of strings
  entities         TEXT NOT NULL DEFAULT '[]',        -- JSON array as given; otherwise read from the text when needed
  title            TEXT NOT NULL DEFAULT '',
  gist             TEXT NOT NULL DEFAULT '',          -- as given; otherwise read from the text when needed
  metadata         TEXT NOT NULL DEFAULT '{}',        -- JSON object
  content          TEXT NOT NULL                      -- verbatim
) STRICT;
-- A partial index over `x IS NOT NULL` makes SQLite prepare every statement on the table again at each binding, since a
-- bound value might prove the condition: 30 microseconds a statement. No parameter can prove the conditions used here.
CREATE INDEX memories_by_external ON memories (external_id, user_no) WHERE external_id <> '';
CREATE INDEX memories_by_expiry  ON memories (expires_at) WHERE expires_at > 0;
-- The session comes first, so that one conversation writes to one page of the index instead of a random page per add.
CREATE INDEX memories_by_hash    ON memories (user_no, session_id, content_hash);
CREATE INDEX memories_by_session ON memories (user_no, session_id, event_time);
-- A user's memories in time, whatever the session: a timeline of a user with 100,000 memories takes 0.2 ms with this
-- index and 25 ms or more without it. The index costs 23 bytes and about a microsecond an add.
CREATE INDEX memories_by_time    ON memories (user_no, event_time);

-- What changes while the text does not. It stands apart from `memories`, so that recall and decay rewrite some 60 bytes
-- a memory instead of its whole row with the text.
CREATE TABLE memory_dynamics (
  seq               INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  state             TEXT NOT NULL DEFAULT 'queued',   -- queued, ready, failed
  status            TEXT NOT NULL DEFAULT 'active',   -- active, superseded, contradicted, archived
  primary_sector    TEXT NOT NULL DEFAULT 'semantic',
  sectors           INTEGER NOT NULL DEFAULT 0,       -- bit i stands for SECTORS[i], the primary one included
  sector_confidence REAL NOT NULL DEFAULT 0,
  salience          REAL NOT NULL,                    -- value at the time salience_at, the anchor
  salience_at       INTEGER NOT NULL,
  salience_now      REAL NOT NULL,                    -- cache written by the daily job, never a source
  decay_lambda      REAL NOT NULL,                    -- per day
  strength          REAL NOT NULL DEFAULT 1,          -- value at the time strength_at, the anchor
  strength_at       INTEGER NOT NULL,
  access_count      INTEGER NOT NULL DEFAULT 0,
  last_seen_at      INTEGER NOT NULL,
  chain_no          INTEGER,                          -- chain of supersessions that the memory is in; NULL for none
  generation_no     INTEGER                           -- document generation that brought it; NULL for none
) STRICT;
CREATE INDEX memory_dynamics_unready ON memory_dynamics (seq) WHERE state <> 'ready';
CREATE INDEX memory_dynamics_by_generation ON memory_dynamics (generation_no) WHERE generation_no > 0;

-- Earlier versions of memories. The table has a rowid, because a search along a WITHOUT ROWID table reads every row
-- whole, snapshot included.
CREATE TABLE memory_revisions (
  memory      INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  version     INTEGER NOT NULL,                       -- the version that was replaced
  replaced_at INTEGER NOT NULL,                       -- never falls from one version to the next
  fields      TEXT NOT NULL,                          -- names of the replaced fields, separated by commas
  by_link     INTEGER NOT NULL,                       -- 1 if a link that came or went changed the memory
  -- Values of that version, replaced or not. A look back reads them for every candidate and must not parse snapshots.
  status      TEXT NOT NULL,
  event_time  INTEGER NOT NULL,
  valid_from  INTEGER,
  valid_to    INTEGER,
  snapshot    TEXT NOT NULL,                          -- JSON of the replaced fields
  PRIMARY KEY (memory, version)
) STRICT;

-- The word index. It is contentless: the text stands once, in `memories`. Code writes and replaces the rows
-- (store/word-index/memory-text.ts), since CJK is segmented and identifiers are split there. `contentless_delete` makes
-- DELETE and REPLACE safe without the old text. `!` belongs to a word: it marks the terms of each partition of 131,072
-- rows (store/word-index/terms.ts), so that no step of merging copies all postings of a common word at once.
CREATE VIRTUAL TABLE memory_text USING fts5 (
  -- The two preceding memories of the session, at most 1,000 characters. It comes first, since two thirds of all
  -- positions are here, and FTS5 spends two bytes on a row's change to a column that is not the first: 60 to 90
  -- bytes a memory.
  context,
  title, content, gist, entities, tags,
  identifiers,                                        -- whole and split identifiers, marked so that nothing stems them
  content = '', contentless_delete = 1, tokenize = "porter unicode61 remove_diacritics 2 tokenchars '!'"
);
-- A write to the word index also merges it, in even steps (store/word-index/merges.ts): with FTS5's own steps every
-- fifth commit takes three times as long.
INSERT INTO memory_text (memory_text, rank) VALUES ('automerge', 0);

-- Change log of rows of memory_text that were replaced or deleted, so that each process reads their lengths anew.
CREATE TABLE text_rewrites (
  rewrite_no INTEGER PRIMARY KEY AUTOINCREMENT,
  memory     INTEGER                                  -- memories.seq; NULL for all
) STRICT;
-- A process that has read nothing yet begins here.
INSERT INTO text_rewrites (memory) VALUES (NULL);

CREATE TABLE models (
  model_no   INTEGER PRIMARY KEY,
  provider   TEXT NOT NULL,
  model      TEXT NOT NULL,
  dimensions INTEGER NOT NULL,
  encoding   TEXT NOT NULL,                           -- int5 or float32
  created_at INTEGER NOT NULL,
  UNIQUE (provider, model, dimensions, encoding)
) STRICT;

-- Canonical vectors, from which every index is derived. A row names its user and its role, so that an index is read
-- from this table alone. A vector in int5 takes five bits a dimension, its sign bits first: 510 bytes for 768
-- dimensions.
CREATE TABLE vectors (
  vector_no INTEGER PRIMARY KEY AUTOINCREMENT,
  memory    INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  user_no   INTEGER NOT NULL,                         -- user of the memory
  model_no  INTEGER NOT NULL,
  window_no INTEGER NOT NULL,                         -- from 0 for windows of the text; -1 for the mean of several
  role      INTEGER NOT NULL,                         -- 0 whole: ranked and linked; 1 window: ranked; 2 mean: linked
  sector    TEXT NOT NULL DEFAULT '',                 -- '' if all sectors share the model and the text
  text_hash BLOB,                                     -- key in embedding_cache; NULL for an embedder that is not cached
  embedding BLOB NOT NULL                             -- last, so that the other columns are read without it
) STRICT;
CREATE UNIQUE INDEX vectors_by_memory ON vectors (memory, model_no, sector, window_no);

-- Codes of the vectors in float32, which the vector index keeps in memory; a start reads 110 bytes a vector instead of
-- 3,100. They are derived from `vectors`; `cairn rebuild-index` makes them again. Vectors in int5 begin with their sign
-- bits and have no row here.
CREATE TABLE vector_codes (
  vector_no INTEGER PRIMARY KEY,                      -- vectors.vector_no, never given twice
  model_no  INTEGER NOT NULL,
  memory    INTEGER NOT NULL,                         -- memories.seq
  user_no   INTEGER NOT NULL,
  role      INTEGER NOT NULL,                         -- as in `vectors`
  code      BLOB NOT NULL                             -- one sign bit for each dimension
) STRICT;

-- Change log of removed vectors, for the index in each process. A process that missed some reads all codes again.
CREATE TABLE vector_removals (
  removal_no INTEGER PRIMARY KEY AUTOINCREMENT,
  vector_no  INTEGER                                  -- NULL for all
) STRICT;
-- A process that has read nothing yet begins here.
INSERT INTO vector_removals (vector_no) VALUES (NULL);

CREATE TABLE embedding_cache (
  model_no   INTEGER NOT NULL,
  text_hash  BLOB NOT NULL,
  embedding  BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (model_no, text_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX embedding_cache_by_time ON embedding_cache (created_at);

-- Calls of embedding providers and of the language model, kept for a while.
CREATE TABLE embed_logs (
  log_no        INTEGER PRIMARY KEY,
  at            INTEGER NOT NULL,
  provider      TEXT NOT NULL,
  model         TEXT NOT NULL,
  purpose       TEXT NOT NULL,                        -- document, query; entities, rerank, contradictions, reflection
  texts         INTEGER NOT NULL,
  tokens        INTEGER NOT NULL,                     -- as billed, or else estimated
  ms            REAL NOT NULL,
  status        TEXT NOT NULL,                        -- completed or failed
  error_code    TEXT,
  error         TEXT,
  output_tokens INTEGER NOT NULL DEFAULT 0,           -- tokens that a language model wrote
  cost_usd      REAL NOT NULL DEFAULT 0,
  server        INTEGER NOT NULL DEFAULT 0            -- 0 for the provider's own server, from 1 for its stand-ins
) STRICT;
CREATE INDEX embed_logs_by_time ON embed_logs (at);
CREATE INDEX embed_logs_failed ON embed_logs (log_no) WHERE status = 'failed';

-- Totals of these calls by day, which outlive the log.
CREATE TABLE provider_usage (
  day           INTEGER NOT NULL,                     -- days since 1970-01-01, UTC
  provider      TEXT NOT NULL,
  model         TEXT NOT NULL,
  purpose       TEXT NOT NULL,                        -- as in `embed_logs`
  calls         INTEGER NOT NULL,
  failed        INTEGER NOT NULL,
  texts         INTEGER NOT NULL,                     -- texts of completed calls
  tokens        INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cost_usd      REAL NOT NULL,
  cached_texts  INTEGER NOT NULL,                     -- texts whose vectors the cache had
  saved_tokens  INTEGER NOT NULL,                     -- tokens of these texts, estimated
  PRIMARY KEY (day, provider, model, purpose)
) STRICT, WITHOUT ROWID;

-- Links between memories: waypoints and stated links.
CREATE TABLE edges (
  src        INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  dst        INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  type       TEXT NOT NULL,
  similarity REAL,                                    -- as measured; NULL for a link that somebody stated
  weight     REAL NOT NULL,                           -- 0..1; a recall raises it
  automatic  INTEGER NOT NULL,                        -- 1 if a step of a job made it, 0 if a caller stated it
  winner     INTEGER,                                 -- contradicts: the memory said to be right; NULL while undecided
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (src, dst, type)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_by_dst ON edges (dst, type);
-- These give the strongest links of a hub without reading all of them.
CREATE INDEX edges_by_src_weight ON edges (src, weight DESC);
CREATE INDEX edges_by_dst_weight ON edges (dst, weight DESC);
CREATE UNIQUE INDEX edges_one_waypoint ON edges (src) WHERE type = 'waypoint' AND automatic = 1;
CREATE INDEX edges_of_reflections ON edges (src) WHERE type = 'derived_from' AND automatic = 1;
-- Each query asks which of its candidates contradict each other. Few do, so an index of these links alone stays small;
-- an index of all links would be read for each candidate.
CREATE INDEX edges_contradicting ON edges (dst) WHERE type = 'contradicts';

-- Ends of the chains of supersessions. Every memory of a chain has the number of its chain in memory_dynamics.
CREATE TABLE chains (
  chain_no INTEGER PRIMARY KEY AUTOINCREMENT,
  live_end INTEGER NOT NULL                           -- the memory that nothing supersedes; the writer keeps it true
) STRICT;

-- The knowledge graph of names in memories. A row here exists as long as a memory mentions the name. Each user has a
-- graph of their own: what one user states must not lead another user anywhere.
CREATE TABLE entities (
  entity_no INTEGER PRIMARY KEY,
  user_no   INTEGER NOT NULL,
  name      TEXT NOT NULL,                            -- folded, as it is looked up
  label     TEXT NOT NULL,                            -- spelling in the first memory that still mentions it
  type      TEXT NOT NULL,                            -- one of the types of the mode
  mentions  INTEGER NOT NULL,                         -- number of memories, so that a hub is known without counting
  UNIQUE (name, user_no)
) STRICT;

CREATE TABLE entity_mentions (
  entity_no INTEGER NOT NULL REFERENCES entities (entity_no) ON DELETE CASCADE,
  memory    INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  label     TEXT NOT NULL,                            -- spelling in this memory, which is deleted with it
  type      TEXT NOT NULL,
  PRIMARY KEY (entity_no, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX entity_mentions_by_memory ON entity_mentions (memory);

-- A relation as stated by one memory.
CREATE TABLE entity_relations (
  src      INTEGER NOT NULL REFERENCES entities (entity_no) ON DELETE CASCADE,
  dst      INTEGER NOT NULL REFERENCES entities (entity_no) ON DELETE CASCADE,
  relation TEXT NOT NULL,                             -- one of the relations of the mode
  memory   INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  PRIMARY KEY (src, dst, relation, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX entity_relations_by_dst ON entity_relations (dst);
CREATE INDEX entity_relations_by_memory ON entity_relations (memory);

-- Meaning of raw scores in this file, fitted on unrelated pairs of its own memories; model 0 stands for words alone.
CREATE TABLE calibrations (
  model_no   INTEGER PRIMARY KEY,
  fitted_at  INTEGER NOT NULL,
  memories   INTEGER NOT NULL,                        -- number of memories when it was fitted
  parameters TEXT NOT NULL                            -- JSON
) STRICT;

-- Documents that were taken in whole. They are kept as chunks, and each chunk is a memory.
CREATE TABLE documents (
  document_no INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT NOT NULL UNIQUE,                   -- UUIDv7
  user_id     TEXT NOT NULL,                          -- not the number, which is deleted with the user's last memory
  external_id TEXT NOT NULL DEFAULT '',               -- '' for none; names one document of a user
  -- These describe the generation that queries find, or else the last one that was handed in.
  session_id  TEXT NOT NULL DEFAULT '',
  source      TEXT NOT NULL DEFAULT 'upload',         -- upload or url
  url         TEXT NOT NULL DEFAULT '',
  state       TEXT NOT NULL,                          -- queued, processing, ready, empty, failed, cancelled, deleting
  error_code  TEXT,
  error       TEXT,
  live_no     INTEGER,                                -- the generation that queries find
  next_no     INTEGER,                                -- the generation that is being made
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX documents_by_external ON documents (external_id, user_id) WHERE external_id <> '';
CREATE INDEX documents_by_url      ON documents (url, user_id) WHERE url <> '';
CREATE INDEX documents_by_state    ON documents (state, document_no);

-- One reading of a document. Its memories are written while it is hidden, and one update shows them, so that no query
-- ever finds half a document. The same transaction hides the generation that it replaces, which is erased afterwards.
CREATE TABLE document_generations (
  generation_no INTEGER PRIMARY KEY AUTOINCREMENT,
  document_no   INTEGER NOT NULL REFERENCES documents (document_no) ON DELETE CASCADE,
  hidden        INTEGER NOT NULL DEFAULT 1,
  created_at    INTEGER NOT NULL,
  -- Columns as the caller gave them.
  session_id    TEXT NOT NULL DEFAULT '',
  source        TEXT NOT NULL,                        -- upload or url
  url           TEXT NOT NULL DEFAULT '',
  always        INTEGER NOT NULL DEFAULT 0,           -- 1 if a page is read even if it has not changed
  upload        TEXT NOT NULL DEFAULT '',             -- name of its file in the uploads folder; '' once it is gone
  file_name     TEXT NOT NULL DEFAULT '',
  declared      TEXT,                                 -- format, if the caller's words and the first bytes agree
  charset       TEXT,
  file_hash     BLOB,                                 -- SHA-256 of the file's bytes; NULL until a URL was fetched
  bytes         INTEGER,
  given_title   TEXT NOT NULL DEFAULT '',
  type          TEXT,
  tags          TEXT NOT NULL DEFAULT '[]',
  metadata      TEXT NOT NULL DEFAULT '{}',
  event_time    INTEGER,
  expires_at    INTEGER,
  -- Columns as the reader found them.
  format        TEXT,
  title         TEXT NOT NULL DEFAULT '',
  authors       TEXT NOT NULL DEFAULT '[]',
  language      TEXT,
  published_at  INTEGER,
  modified_at   INTEGER,
  etag          TEXT,
  last_modified TEXT,
  pages         INTEGER,
  pages_done    INTEGER NOT NULL DEFAULT 0,
  characters    INTEGER NOT NULL DEFAULT 0,
  tokens        INTEGER NOT NULL DEFAULT 0,
  chunks        INTEGER NOT NULL DEFAULT 0,
  warnings      TEXT NOT NULL DEFAULT '[]',           -- JSON: what was left out, and why
  receipt       TEXT,                                 -- JSON: chunks stored, kept, removed
  stages        TEXT NOT NULL DEFAULT '{}',           -- JSON: ms of each stage
  shown_at      INTEGER,
  failed_at     INTEGER,                              -- when the reading gave up
  settled_at    INTEGER                               -- when all chunks were embedded and linked, or given up
) STRICT;
CREATE INDEX document_generations_by_document ON document_generations (document_no);
CREATE INDEX document_generations_by_hash     ON document_generations (file_hash);
CREATE INDEX document_generations_by_url      ON document_generations (url) WHERE url <> '';
CREATE INDEX document_generations_by_expiry   ON document_generations (expires_at) WHERE expires_at > 0;
-- Tells how much waits to be read, and which files nobody will read again.
CREATE INDEX document_generations_uploads     ON document_generations (failed_at, bytes, upload) WHERE upload <> '';
-- Every search asks for these rows, of which there is a handful at most times.
CREATE INDEX document_generations_hidden      ON document_generations (generation_no) WHERE hidden > 0;

-- Positions of a generation's memories. A chunk that a new generation keeps is in both until the old one is erased.
CREATE TABLE chunks (
  generation_no INTEGER NOT NULL REFERENCES document_generations (generation_no) ON DELETE CASCADE,
  chunk_index   INTEGER NOT NULL,                     -- from 0 in the order of the text; -1 for the root memory
  memory        INTEGER NOT NULL,
  start_offset  INTEGER NOT NULL,                     -- UTF-16 units of the extracted text
  end_offset    INTEGER NOT NULL,
  page_from     INTEGER,
  page_to       INTEGER,
  heading_path  TEXT NOT NULL DEFAULT '[]',           -- JSON array of strings
  tokens        INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (generation_no, chunk_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX chunks_by_memory ON chunks (memory);

-- The ledger: what work is owed. A row holds its next step. A lease is (owner, until, epoch), and every commit of a
-- step checks the epoch. Done rows stay for a while so that their state can be asked for. A job takes 170 bytes,
-- its indexes included, since its id is kept as 16 bytes and its timeline in a short form (store/job-timeline.ts).
CREATE TABLE jobs (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid           BLOB NOT NULL UNIQUE,                -- UUIDv7
  -- The id as callers know it. Jobs are looked up by uuid, which has an index.
  id             TEXT AS (lower(hex(substr(uuid, 1, 4)) || '-' || hex(substr(uuid, 5, 2)) || '-' ||
                   hex(substr(uuid, 7, 2)) || '-' || hex(substr(uuid, 9, 2)) || '-' || hex(substr(uuid, 11)))) VIRTUAL,
  kind           TEXT NOT NULL,                       -- memory, document, reembed, contradictions, reflection
  memory         INTEGER,                             -- seq; no foreign key, a deleted memory cancels its jobs
  step           TEXT NOT NULL,                       -- ingest, settle, encode, link, reason, done
  state          TEXT NOT NULL,                       -- queued, active, failed (is tried again), done, dead, cancelled
  priority       INTEGER NOT NULL DEFAULT 0,          -- 0 interactive, 1 bulk
  attempts       INTEGER NOT NULL DEFAULT 0,          -- failed attempts at the current step
  crashes        INTEGER NOT NULL DEFAULT 0,          -- crashes while it ran alone
  suspect        INTEGER NOT NULL DEFAULT 0,          -- if in flight at a crash: how many may run together; otherwise 0
  run_at         INTEGER NOT NULL,
  lease_owner    TEXT,
  lease_until    INTEGER,
  lease_epoch    INTEGER NOT NULL DEFAULT 0,
  lease_alone    INTEGER NOT NULL DEFAULT 0,          -- number of suspects that run together; 0 if other jobs run, too
  dispatches     INTEGER NOT NULL DEFAULT 0,          -- number of times a queue was told of it
  dispatched_until INTEGER NOT NULL DEFAULT 0,        -- a queue knows it until then; 0 once it was claimed
  error_code     TEXT,
  error          TEXT,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  finished_at    INTEGER,
  timeline       TEXT NOT NULL DEFAULT '',            -- letters of events with ms since created_at: e523l530d
  document       INTEGER,                             -- document that it takes in, or that its memory belongs to
  trace_context  TEXT                                 -- W3C trace context of its request; NULL if not traced
) STRICT;
-- The last column, `state`, lets jobs be counted on the indexes alone.
CREATE INDEX jobs_due      ON jobs (step, suspect, priority, run_at, seq, state) WHERE state IN ('queued', 'failed');
CREATE INDEX jobs_leased   ON jobs (lease_until) WHERE state = 'active';
CREATE INDEX jobs_by_memory ON jobs (memory);
CREATE INDEX jobs_by_end   ON jobs (state, finished_at) WHERE finished_at > 0;
CREATE INDEX jobs_by_document ON jobs (document, state) WHERE document > 0;
-- Jobs of kinds with few jobs, for lists and counts of them.
CREATE INDEX jobs_of_documents      ON jobs (state) WHERE kind = 'document';
CREATE INDEX jobs_of_reembed        ON jobs (state, memory) WHERE kind = 'reembed';
CREATE INDEX jobs_of_contradictions ON jobs (state) WHERE kind = 'contradictions';
CREATE INDEX jobs_of_reflections    ON jobs (state) WHERE kind = 'reflection';

-- Reflections: a language model's conclusions from memories of one user. Each is a memory with automatic `derived_from`
-- edges, which no other memory has. A row here is one run of reflecting: it is owed while it has a job; otherwise it
-- says how far the user's last run had read.
CREATE TABLE reflections (
  reflection_no INTEGER PRIMARY KEY,
  user_no       INTEGER NOT NULL REFERENCES users (user_no) ON DELETE CASCADE,
  session_id    TEXT,                                 -- NULL for all sessions; with a session, `up_to` has no meaning
  job           INTEGER REFERENCES jobs (seq) ON DELETE CASCADE,
  up_to         INTEGER                               -- last memory of the file when the run read; NULL while owed
) STRICT;
CREATE INDEX reflections_by_user ON reflections (user_no);
CREATE UNIQUE INDEX reflections_by_job ON reflections (job);

-- Replies kept under an Idempotency-Key. They hold ids, never content. When a memory of the reply is deleted, the row
-- stays as a tombstone (reply NULL), so that a late retry of the add cannot bring the memory back.
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
