-- Standing queries: questions whose later answers are told of.
CREATE TABLE standing_queries (
  query_no   INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT NOT NULL UNIQUE,                    -- UUIDv7
  user_id    TEXT,                                    -- NULL for the memories of all users
  query      TEXT NOT NULL,
  filter     TEXT NOT NULL,                           -- JSON: conditions on memories, beside the user
  given      TEXT NOT NULL,                           -- JSON: the conditions as the caller wrote them
  min_score  REAL,                                    -- NULL for the default floor of the tenant
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX standing_queries_by_user ON standing_queries (user_id);

-- Which memory has answered which query. A pair is told once, and the row is the memory of that.
CREATE TABLE standing_answers (
  query_no   INTEGER NOT NULL REFERENCES standing_queries (query_no) ON DELETE CASCADE,
  memory     INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  score      REAL,                                    -- NULL where it only supersedes an answer
  supersedes INTEGER,                                 -- number of the answer that it supersedes; NULL for none
  at         INTEGER NOT NULL,
  PRIMARY KEY (query_no, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX standing_answers_by_memory ON standing_answers (memory);

-- Memories that are to be compared with the standing queries. A change of a memory gives its row a new number, so that
-- a comparison with the state before does not remove it.
CREATE TABLE standing_due (
  due_no      INTEGER PRIMARY KEY AUTOINCREMENT,
  memory      INTEGER NOT NULL UNIQUE REFERENCES memories (seq) ON DELETE CASCADE,
  lease_until INTEGER NOT NULL DEFAULT 0              -- until then a process compares it
) STRICT;

CREATE TRIGGER standing_of_ready_memories AFTER UPDATE OF state ON memory_dynamics
WHEN NEW.state <> OLD.state AND NEW.state <> 'queued' AND EXISTS (SELECT 1 FROM standing_queries)
  AND coalesce((SELECT hidden FROM document_generations WHERE generation_no = NEW.generation_no), 0) = 0 BEGIN
  INSERT OR REPLACE INTO standing_due (memory) VALUES (NEW.seq);
END;

-- Parts of a document answer once the document is shown.
CREATE TRIGGER standing_of_shown_generations AFTER UPDATE OF hidden ON document_generations
WHEN NEW.hidden = 0 AND OLD.hidden = 1 AND EXISTS (SELECT 1 FROM standing_queries) BEGIN
  INSERT OR REPLACE INTO standing_due (memory)
    SELECT seq FROM memory_dynamics WHERE generation_no = NEW.generation_no AND state <> 'queued';
END;

CREATE TRIGGER standing_of_successors AFTER INSERT ON edges
WHEN NEW.type = 'supersedes' AND EXISTS (SELECT 1 FROM standing_queries) BEGIN
  INSERT OR REPLACE INTO standing_due (memory) VALUES (NEW.src);
END;

-- Addresses that are told of events.
CREATE TABLE webhooks (
  hook_no    INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT NOT NULL UNIQUE,                    -- UUIDv7
  query_no   INTEGER REFERENCES standing_queries (query_no) ON DELETE CASCADE, -- the only query whose answers are told
  user_id    TEXT,                                    -- the only user whose events are told; NULL for all
  url        TEXT NOT NULL,
  kinds      TEXT NOT NULL,                           -- JSON array of kinds of events; empty for all
  secret     TEXT NOT NULL,                           -- whsec_ and base64: signs each delivery, so it is kept as it is
  since_no   INTEGER NOT NULL,                        -- events up to this number came before the webhook
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX webhooks_by_query ON webhooks (query_no);
CREATE INDEX webhooks_by_user  ON webhooks (user_id);

-- What a webhook is or was told: one event each, with ids and no content.
CREATE TABLE deliveries (
  delivery_no INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT NOT NULL UNIQUE,                   -- the header webhook-id, the same at each attempt
  hook_no     INTEGER NOT NULL REFERENCES webhooks (hook_no) ON DELETE CASCADE,
  at          INTEGER NOT NULL,                       -- time of the event
  user_id     TEXT,
  event       TEXT NOT NULL,                          -- JSON: kind and ids
  state       TEXT NOT NULL DEFAULT 'pending',        -- pending, delivered, dead
  attempts    INTEGER NOT NULL DEFAULT 0,
  next_at     INTEGER NOT NULL,                       -- time of the next attempt; until then a claim holds
  last_status INTEGER,                                -- HTTP status of the last attempt; NULL where none came
  last_error  TEXT,
  ended_at    INTEGER
) STRICT;
CREATE INDEX deliveries_pending ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_pending_by_hook ON deliveries (hook_no, next_at) WHERE state = 'pending';
CREATE INDEX deliveries_by_hook ON deliveries (hook_no, state, delivery_no);
CREATE INDEX deliveries_ended   ON deliveries (ended_at) WHERE state <> 'pending';
CREATE INDEX deliveries_by_user ON deliveries (user_id);

-- One row: the events up to this number are handed to the webhooks.
CREATE TABLE webhook_cursor (
  row_no   INTEGER PRIMARY KEY CHECK (row_no = 1),
  feed_id  TEXT NOT NULL,
  event_no INTEGER NOT NULL
) STRICT;
INSERT INTO webhook_cursor (row_no, feed_id, event_no) VALUES (1, '', 0);
