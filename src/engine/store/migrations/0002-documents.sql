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
  state       TEXT NOT NULL,                          -- queued, processing, ready, empty, failed, cancelled; deleting while it is erased
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

-- One reading of a document. Its memories are written while it is hidden and shown by one update, so that no query ever finds half a
-- document; what it replaces is hidden in the same transaction and erased afterwards.
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
  declared      TEXT,                                 -- format, where the caller's words and the first bytes agree on one
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
  failed_at     INTEGER,                              -- the reading gave up
  settled_at    INTEGER                               -- all chunks embedded and linked, or given up
) STRICT;
CREATE INDEX document_generations_by_document ON document_generations (document_no);
CREATE INDEX document_generations_by_hash     ON document_generations (file_hash);
CREATE INDEX document_generations_by_url      ON document_generations (url) WHERE url <> '';
CREATE INDEX document_generations_by_expiry   ON document_generations (expires_at) WHERE expires_at > 0;
-- How much waits to be read, and which files nobody will read again.
CREATE INDEX document_generations_uploads     ON document_generations (failed_at, bytes, upload) WHERE upload <> '';
-- What every search asks: a handful of rows at most times.
CREATE INDEX document_generations_hidden      ON document_generations (generation_no) WHERE hidden > 0;

-- The places of a generation's memories. A chunk that a new generation keeps stands in both until the old one is erased.
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

-- Which generation a memory belongs to; NULL for what no document brought.
ALTER TABLE memory_dynamics ADD COLUMN generation_no INTEGER;
CREATE INDEX memory_dynamics_by_generation ON memory_dynamics (generation_no) WHERE generation_no > 0;

-- The document that a job takes in, or that the memory of a job belongs to.
ALTER TABLE jobs ADD COLUMN document INTEGER;
CREATE INDEX jobs_by_document ON jobs (document, state) WHERE document > 0;
-- The few among the many, for lists of them.
CREATE INDEX jobs_of_documents ON jobs (state) WHERE kind = 'document';
