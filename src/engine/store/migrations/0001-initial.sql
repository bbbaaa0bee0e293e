-- A tenant's whole world. No table names a tenant: the file is the tenant.
-- Times are Unix milliseconds. `seq` is a row's small number inside the file; `id` is what clients see.

-- "Carn": this line of migrations made the file (store/tenant-file.ts).
PRAGMA application_id = 0x4361726e;

CREATE TABLE store_info (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A user_id is a namespace; '' (number 0) means "no user". A small number keeps every index narrow.
CREATE TABLE users (
  user_no  INTEGER PRIMARY KEY,
  user_id  TEXT NOT NULL UNIQUE,
  memories INTEGER NOT NULL DEFAULT 0                 -- how many the user has, so that no query counts them
) STRICT;
INSERT INTO users (user_no, user_id) VALUES (0, '');

-- What was said: written at the add, changed only by PATCH. The long columns come last, so that a filter on the short
-- ones never walks their overflow pages. AUTOINCREMENT: a number is never given twice, so late work for a deleted
-- memory cannot land on another.
CREATE TABLE memories (
  seq              INTEGER PRIMARY KEY AUTOINCREMENT,
  id               TEXT NOT NULL UNIQUE,              -- UUIDv7
  user_no          INTEGER NOT NULL,
  session_id       TEXT NOT NULL DEFAULT '',
  event_time       INTEGER NOT NULL,                  -- when it happened: as given, else created_at
  event_time_given INTEGER NOT NULL,                  -- 1 if the caller gave it; duplicates compare given times only
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  valid_from       INTEGER,
  valid_to         INTEGER,                           -- half-open: valid while valid_from <= t < valid_to
  expires_at       INTEGER,                           -- hidden from then on, erased by the expiry job
  version          INTEGER NOT NULL DEFAULT 1,
  confidence       REAL NOT NULL DEFAULT 1,
  importance       REAL,                              -- 0..1 as given; sets the initial salience
  type             TEXT,
  external_id      TEXT,
  content_hash     BLOB NOT NULL,                     -- the first 8 bytes of SHA-256 of the normalised content
  tags             TEXT NOT NULL DEFAULT '[]',        -- JSON array of strings
  files            TEXT NOT NULL DEFAULT '[]',        -- JSON array of strings
  entities         TEXT NOT NULL DEFAULT '[]',        -- JSON array as given; else read off the text when asked for
  title            TEXT NOT NULL DEFAULT '',
  gist             TEXT NOT NULL DEFAULT '',          -- as given; else read off the text when asked for
  metadata         TEXT NOT NULL DEFAULT '{}',        -- JSON object
  content          TEXT NOT NULL                      -- verbatim
) STRICT;
-- A partial index over `x IS NOT NULL` makes SQLite prepare every statement on the table again at each binding, since a
-- bound value might prove the condition: 30 microseconds a statement. No parameter can prove the conditions below.
CREATE INDEX memories_by_external ON memories (external_id, user_no) WHERE external_id <> '';
CREATE INDEX memories_by_expiry  ON memories (expires_at) WHERE expires_at > 0;
-- By session first, so that one conversation writes to one page of the index rather than to a random one an add.
CREATE INDEX memories_by_hash    ON memories (user_no, session_id, content_hash);
CREATE INDEX memories_by_session ON memories (user_no, session_id, event_time);
-- A user's memories in time, whatever the session: a timeline of a user with 100,000 takes 0.2 ms, 25 ms and more
-- without. It costs 23 bytes and about a microsecond an add.
CREATE INDEX memories_by_time    ON memories (user_no, event_time);

-- What changes while the text does not. Apart from `memories`, so that recall and decay rewrite some 60 bytes a memory
-- rather than its whole row with the text.
CREATE TABLE memory_dynamics (
  seq               INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  state             TEXT NOT NULL DEFAULT 'queued',   -- queued, ready, failed
  status            TEXT NOT NULL DEFAULT 'active',   -- active, superseded, contradicted, archived
  primary_sector    TEXT NOT NULL DEFAULT 'semantic',
  sectors           INTEGER NOT NULL DEFAULT 0,       -- bit i stands for SECTORS[i], the primary one included
  sector_confidence REAL NOT NULL DEFAULT 0,
  salience          REAL NOT NULL,                    -- value at the anchor salience_at
  salience_at       INTEGER NOT NULL,
  salience_now      REAL NOT NULL,                    -- cache of the daily job, never a source
  decay_lambda      REAL NOT NULL,                    -- per day
  strength          REAL NOT NULL DEFAULT 1,          -- value at the anchor strength_at
  strength_at       INTEGER NOT NULL,
  access_count      INTEGER NOT NULL DEFAULT 0,
  last_seen_at      INTEGER NOT NULL,
  chain_no          INTEGER,                          -- chain of supersessions that the memory is in; NULL for none
  generation_no     INTEGER                           -- reading of a document that it belongs to; NULL for none
) STRICT;
CREATE INDEX memory_dynamics_unready ON memory_dynamics (seq) WHERE state <> 'ready';
CREATE INDEX memory_dynamics_by_generation ON memory_dynamics (generation_no) WHERE generation_no > 0;

-- Earlier versions of memories. With a rowid: a search that runs along a WITHOUT ROWID table reads every row of it
-- whole, snapshot included.
CREATE TABLE memory_revisions (
  memory      INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  version     INTEGER NOT NULL,                       -- the version that was replaced
  replaced_at INTEGER NOT NULL,                       -- never falls from a version to the next
  fields      TEXT NOT NULL,                          -- names of the replaced fields, with commas between
  by_link     INTEGER NOT NULL,                       -- 1 where a link that came or went changed the memory
  -- As that version had them, replaced or not: a look back asks for them of every candidate and must not parse texts.
  status      TEXT NOT NULL,
  event_time  INTEGER NOT NULL,
  valid_from  INTEGER,
  valid_to    INTEGER,
  snapshot    TEXT NOT NULL,                          -- JSON of the replaced fields
  PRIMARY KEY (memory, version)
) STRICT;

-- Words. Contentless: the text stands once, in `memories`; rows are written and replaced from code (store/word-index/text.ts),
-- since CJK is segmented and identifiers are split there. `contentless_delete` makes DELETE and REPLACE safe without
-- the old text. `!` belongs to a word: it marks the words of each partition of 131,072 rows
-- (store/word-index/tokens.ts), so that no step of merging copies all postings of a common word at once.
CREATE VIRTUAL TABLE memory_text USING fts5 (
  -- The two preceding memories of the session, at most 1,000 characters. First, since two thirds of all places are here
  -- and FTS5 spends two bytes on each row's change to a column that is not the first: 60 to 90 bytes a memory.
  context,
  title, content, gist, entities, tags,
  identifiers,                                        -- whole and split identifiers, marked so that nothing stems them
  content = '', contentless_delete = 1, tokenize = "porter unicode61 remove_diacritics 2 tokenchars '!'"
);
-- Whoever writes to the word index merges it, in even steps (store/word-index/text.ts): FTS5's own steps make every fifth commit
-- three times as long.
INSERT INTO memory_text (memory_text, rank) VALUES ('automerge', 0);

-- The last rows of memory_text that were written again or deleted, so that each process reads their lengths anew.
CREATE TABLE text_rewrites (
  rewrite_no INTEGER PRIMARY KEY AUTOINCREMENT,
  memory     INTEGER                                  -- memories.seq; NULL for all
) STRICT;
-- A process that knows nothing takes over from here.
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

-- Canonical vectors; every index is derived from them. A row says whose it is and what for, so that an index is read
-- from here alone. A vector in int5 takes five bits a dimension, its sign bits first: 510 bytes for 768 dimensions.
CREATE TABLE vectors (
  vector_no INTEGER PRIMARY KEY AUTOINCREMENT,
  memory    INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  user_no   INTEGER NOT NULL,                         -- of the memory
  model_no  INTEGER NOT NULL,
  window_no INTEGER NOT NULL,                         -- 0.. for windows of the text; -1 for the mean of several
  role      INTEGER NOT NULL,                         -- 0 whole: ranked and linked; 1 window: ranked; 2 mean: linked
  sector    TEXT NOT NULL DEFAULT '',                 -- '' where all sectors share the model and the text
  text_hash BLOB,                                     -- key in embedding_cache; NULL for an embedder that is not cached
  embedding BLOB NOT NULL                             -- last, so that the others are read without it
) STRICT;
CREATE UNIQUE INDEX vectors_by_memory ON vectors (memory, model_no, sector, window_no);

-- What the vector index keeps in memory of each vector in float32, so that a start reads 110 bytes of it in place of
-- 3,100. Derived from `vectors`; `cairn rebuild-index` makes it again. Vectors in int5 begin with their sign bits and
-- have no row here.
CREATE TABLE vector_codes (
  vector_no INTEGER PRIMARY KEY,                      -- vectors.vector_no, never given twice
  model_no  INTEGER NOT NULL,
  memory    INTEGER NOT NULL,                         -- memories.seq
  user_no   INTEGER NOT NULL,
  role      INTEGER NOT NULL,                         -- as in `vectors`
  code      BLOB NOT NULL                             -- a sign bit a dimension
) STRICT;

-- The last removals, so that each process takes them over. A process that missed some reads all codes again.
CREATE TABLE vector_removals (
  removal_no INTEGER PRIMARY KEY AUTOINCREMENT,
  vector_no  INTEGER                                  -- NULL for all
) STRICT;
-- A process that knows nothing takes over from here.
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
  tokens        INTEGER NOT NULL,                     -- as billed, else estimated
  ms            REAL NOT NULL,
  status        TEXT NOT NULL,                        -- completed or failed
  error_code    TEXT,
  error         TEXT,
  output_tokens INTEGER NOT NULL DEFAULT 0,           -- of a language model
  cost_usd      REAL NOT NULL DEFAULT 0,
  server        INTEGER NOT NULL DEFAULT 0            -- 0 for the provider's own, 1.. for its stand-ins
) STRICT;
CREATE INDEX embed_logs_by_time ON embed_logs (at);
CREATE INDEX embed_logs_failed ON embed_logs (log_no) WHERE status = 'failed';

-- Totals of these calls by day, which outlive the log.
CREATE TABLE provider_usage (
  day           INTEGER NOT NULL,                     -- since 1970-01-01, UTC
  provider      TEXT NOT NULL,
  model         TEXT NOT NULL,
  purpose       TEXT NOT NULL,                        -- as in `embed_logs`
  calls         INTEGER NOT NULL,
  failed        INTEGER NOT NULL,
  texts         INTEGER NOT NULL,                     -- of calls that completed
  tokens        INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cost_usd      REAL NOT NULL,
  cached_texts  INTEGER NOT NULL,                     -- texts whose vector was known
  saved_tokens  INTEGER NOT NULL,                     -- estimated
  PRIMARY KEY (day, provider, model, purpose)
) STRICT, WITHOUT ROWID;

-- Links between memories: waypoints and stated links.
CREATE TABLE edges (
  src        INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  dst        INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  type       TEXT NOT NULL,
  similarity REAL,                                    -- as measured; NULL for a link that somebody stated
  weight     REAL NOT NULL,                           -- 0..1, what recall reinforces
  automatic  INTEGER NOT NULL,                        -- 1 where a step of a job made it, 0 where a caller stated it
  winner     INTEGER,                                 -- contradicts: the memory said to be right; NULL while open
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (src, dst, type)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_by_dst ON edges (dst, type);
-- The strongest links of a hub without reading all of them.
CREATE INDEX edges_by_src_weight ON edges (src, weight DESC);
CREATE INDEX edges_by_dst_weight ON edges (dst, weight DESC);
CREATE UNIQUE INDEX edges_one_waypoint ON edges (src) WHERE type = 'waypoint' AND automatic = 1;
CREATE INDEX edges_of_reflections ON edges (src) WHERE type = 'derived_from' AND automatic = 1;
-- Each query asks which of its candidates contradict each other. Few do: an index of nothing else stays small, where
-- that of all links would be read for each candidate.
CREATE INDEX edges_contradicting ON edges (dst) WHERE type = 'contradicts';

-- Where chains of supersessions lead. A number stands in memory_dynamics for every memory of the chain.
CREATE TABLE chains (
  chain_no INTEGER PRIMARY KEY AUTOINCREMENT,
  live_end INTEGER NOT NULL                           -- the memory that nothing supersedes; the writer keeps it true
) STRICT;

-- The knowledge graph of names in memories. A row here lives as long as a memory mentions it. Each user has a graph of
-- their own: what one user states must not lead another anywhere.
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
  label     TEXT NOT NULL,                            -- as the memory writes the name: the spelling goes with it
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

-- Documents: what was taken in whole and is kept as chunks, each a memory.
CREATE TABLE documents (
  document_no INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT NOT NULL UNIQUE,                   -- UUIDv7
  user_id     TEXT NOT NULL,                          -- not the number, which goes with the user's last memory
  external_id TEXT NOT NULL DEFAULT '',               -- '' for none; one document a user
  -- Of the generation that queries find; before there is one, of the last that was handed in.
  session_id  TEXT NOT NULL DEFAULT '',
  source      TEXT NOT NULL DEFAULT 'upload',         -- upload or url
  url         TEXT NOT NULL DEFAULT '',
  state       TEXT NOT NULL,                          -- queued, processing, ready, empty, failed, cancelled, deleting
  error_code  TEXT,
  error       TEXT,
  live_no     INTEGER,                                -- the generation that queries find
  next_no     INTEGER,                                -- the one that is being made
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX documents_by_external ON documents (external_id, user_id) WHERE external_id <> '';
CREATE INDEX documents_by_url      ON documents (url, user_id) WHERE url <> '';
CREATE INDEX documents_by_state    ON documents (state, document_no);

-- One reading of a document. Its memories are written while it is hidden and shown by one update, so that no query ever
-- finds half a document; what it replaces is hidden in the same transaction and erased afterwards.
CREATE TABLE document_generations (
  generation_no INTEGER PRIMARY KEY AUTOINCREMENT,
  document_no   INTEGER NOT NULL REFERENCES documents (document_no) ON DELETE CASCADE,
  hidden        INTEGER NOT NULL DEFAULT 1,
  created_at    INTEGER NOT NULL,
  -- as given
  session_id    TEXT NOT NULL DEFAULT '',
  source        TEXT NOT NULL,                        -- upload or url
  url           TEXT NOT NULL DEFAULT '',
  always        INTEGER NOT NULL DEFAULT 0,           -- 1 where a page is read even if it has not changed
  upload        TEXT NOT NULL DEFAULT '',             -- name of its file in the uploads folder; '' once that is gone
  file_name     TEXT NOT NULL DEFAULT '',
  declared      TEXT,                                 -- format, where the caller's words and the first bytes agree
  charset       TEXT,
  file_hash     BLOB,                                 -- SHA-256 of the file's bytes; NULL until a URL was fetched
  bytes         INTEGER,
  given_title   TEXT NOT NULL DEFAULT '',
  type          TEXT,
  tags          TEXT NOT NULL DEFAULT '[]',
  metadata      TEXT NOT NULL DEFAULT '{}',
  event_time    INTEGER,
  expires_at    INTEGER,
  -- as found
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
  warnings      TEXT NOT NULL DEFAULT '[]',           -- JSON: what was left out and why
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
-- How much waits to be read, and which files nobody will read again.
CREATE INDEX document_generations_uploads     ON document_generations (failed_at, bytes, upload) WHERE upload <> '';
-- What every search asks: a handful of rows at most times.
CREATE INDEX document_generations_hidden      ON document_generations (generation_no) WHERE hidden > 0;

-- The places of a generation's memories. A chunk that a new generation keeps is in both until the old one is erased.
CREATE TABLE chunks (
  generation_no INTEGER NOT NULL REFERENCES document_generations (generation_no) ON DELETE CASCADE,
  chunk_index   INTEGER NOT NULL,                     -- 0.. in the order of the text; -1 for the document's root memory
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

-- The ledger: what work is owed. A row holds its next step; a lease is (owner, until, epoch) and every commit of a step
-- checks the epoch. Done rows stay for a while so that their state can be asked for. A job takes 170 bytes, its indexes
-- included, since its id is kept as 16 bytes and what happened to it in a short form (store/job-timeline.ts).
CREATE TABLE jobs (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid           BLOB NOT NULL UNIQUE,                -- UUIDv7
  -- As callers know it. Look it up by uuid, which has an index.
  id             TEXT AS (lower(hex(substr(uuid, 1, 4)) || '-' || hex(substr(uuid, 5, 2)) || '-' ||
                   hex(substr(uuid, 7, 2)) || '-' || hex(substr(uuid, 9, 2)) || '-' || hex(substr(uuid, 11)))) VIRTUAL,
  kind           TEXT NOT NULL,                       -- memory, document, reembed, contradictions, reflection
  memory         INTEGER,                             -- seq; no foreign key, a deleted memory cancels its jobs
  step           TEXT NOT NULL,                       -- ingest, settle, encode, link, reason, done
  state          TEXT NOT NULL,                       -- queued, active, failed (is tried again), done, dead, cancelled
  priority       INTEGER NOT NULL DEFAULT 0,          -- 0 interactive, 1 bulk
  attempts       INTEGER NOT NULL DEFAULT 0,          -- of the current step, failures only
  crashes        INTEGER NOT NULL DEFAULT 0,          -- while it ran alone
  suspect        INTEGER NOT NULL DEFAULT 0,          -- in flight at a crash: how many may run together; else 0
  run_at         INTEGER NOT NULL,
  lease_owner    TEXT,
  lease_until    INTEGER,
  lease_epoch    INTEGER NOT NULL DEFAULT 0,
  lease_alone    INTEGER NOT NULL DEFAULT 0,          -- how many suspects run together; 0 where others run, too
  dispatches     INTEGER NOT NULL DEFAULT 0,          -- how often a queue was told of it
  dispatched_until INTEGER NOT NULL DEFAULT 0,        -- a queue knows it until then; 0 once it was claimed
  error_code     TEXT,
  error          TEXT,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  finished_at    INTEGER,
  timeline       TEXT NOT NULL DEFAULT '',            -- a letter an event, ms since created_at: e523l530d
  document       INTEGER,                             -- document that it takes in, or that its memory belongs to
  trace_context  TEXT                                 -- W3C, of the request behind it; NULL if not traced
) STRICT;
-- The trailing `state` lets jobs be counted on the indexes alone.
CREATE INDEX jobs_due      ON jobs (step, suspect, priority, run_at, seq, state) WHERE state IN ('queued', 'failed');
CREATE INDEX jobs_leased   ON jobs (lease_until) WHERE state = 'active';
CREATE INDEX jobs_by_memory ON jobs (memory);
CREATE INDEX jobs_by_end   ON jobs (state, finished_at) WHERE finished_at > 0;
CREATE INDEX jobs_by_document ON jobs (document, state) WHERE document > 0;
-- The few among the many, for lists and counts of them.
CREATE INDEX jobs_of_documents      ON jobs (state) WHERE kind = 'document';
CREATE INDEX jobs_of_reembed        ON jobs (state, memory) WHERE kind = 'reembed';
CREATE INDEX jobs_of_contradictions ON jobs (state) WHERE kind = 'contradictions';
CREATE INDEX jobs_of_reflections    ON jobs (state) WHERE kind = 'reflection';

-- Reflections: what a language model concluded from memories of one user. Each is a memory with `derived_from` edges
-- that are automatic, which no other memory has. A row here is one run of reflecting: owed while it has a job, else how
-- far the user's last run had read.
CREATE TABLE reflections (
  reflection_no INTEGER PRIMARY KEY,
  user_no       INTEGER NOT NULL REFERENCES users (user_no) ON DELETE CASCADE,
  session_id    TEXT,                                 -- NULL for all sessions; with one, `up_to` says nothing
  job           INTEGER REFERENCES jobs (seq) ON DELETE CASCADE,
  up_to         INTEGER                               -- the last memory of the file when it read; NULL while owed
) STRICT;
CREATE INDEX reflections_by_user ON reflections (user_no);
CREATE UNIQUE INDEX reflections_by_job ON reflections (job);

-- Replies kept under an Idempotency-Key. They hold ids, never content. When a memory of the reply is deleted the row
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
