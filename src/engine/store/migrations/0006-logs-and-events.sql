-- Session logs: for each session of a user the JSON items that an agent wrote, in their order. They are not searched.
CREATE TABLE session_logs (
  log_no     INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id    TEXT,                                    -- NULL in a log that was cleared or erased, whose items go next
  session_id TEXT,
  items      INTEGER NOT NULL DEFAULT 0,              -- number of items: the position of the next one
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (user_id, session_id)
) STRICT;

CREATE TABLE session_log_items (
  log_no     INTEGER NOT NULL,
  position   INTEGER NOT NULL,                        -- from 0 without a gap
  created_at INTEGER NOT NULL,
  item       TEXT NOT NULL,                           -- JSON
  PRIMARY KEY (log_no, position)
) STRICT;

-- Changes of logs that were named by their caller, so that a retry changes nothing. Both hashes are keyed by a secret of
-- this file. When the log is erased, the row stays as a tombstone, so that a late retry brings nothing back.
CREATE TABLE session_log_operations (
  operation_hash BLOB PRIMARY KEY,                    -- of user, session and operation id
  log_no         INTEGER NOT NULL,
  content_hash   BLOB,                                -- of what was asked for; NULL in a tombstone
  reply          TEXT,                                -- JSON of numbers; NULL in a tombstone
  created_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_log_operations_by_log  ON session_log_operations (log_no);
CREATE INDEX session_log_operations_by_time ON session_log_operations (created_at);

-- The change feed: what happened to memories, documents and jobs, without any content. Triggers write it, so no commit
-- of any process can change something without its event, nor leave an event of a change that was rolled back. Writes
-- do not overlap, so numbers rise in the order of the commits.
CREATE TABLE events (
  event_no INTEGER PRIMARY KEY,                       -- never given twice, as the newest row is never purged
  at       INTEGER NOT NULL,
  kind     INTEGER NOT NULL,                          -- place in EVENT_KINDS (types/events.ts)
  memory   INTEGER,                                   -- memories.seq, where the memory is still there
  user_no  INTEGER,                                   -- beside a subject: as in `users` or `erased_users`
  subject  ANY                                        -- UUID of what has no number here or is gone, as 16 bytes
) STRICT;

-- One row. `feed_id` is part of every cursor, and is made anew where numbers could come twice or events be missing.
CREATE TABLE event_feed (
  row_no  INTEGER PRIMARY KEY CHECK (row_no = 1),
  feed_id TEXT NOT NULL,
  is_on   INTEGER NOT NULL
) STRICT;
INSERT INTO event_feed (row_no, feed_id, is_on) VALUES (1, lower(hex(randomblob(4))), 0);

-- Users without memories whose events are still kept. Their names are gone; a keyed hash recognises a user who is asked
-- for or comes back. It also keeps the number from being given to somebody else.
CREATE TABLE erased_users (
  user_no   INTEGER PRIMARY KEY,
  user_hash BLOB NOT NULL UNIQUE,
  erased_at INTEGER NOT NULL
) STRICT;

-- Chunks of documents have no events of their own: they come and go with their document. An event holds the number of its
-- memory alone, and the reader finds id and user: a trigger that looked them up cost an add 4 %.
CREATE TRIGGER events_of_stored_memories AFTER INSERT ON memory_dynamics
WHEN NEW.generation_no IS NULL AND (SELECT is_on FROM event_feed) = 1 BEGIN
  INSERT INTO events (at, kind, memory) VALUES (NEW.last_seen_at, 0, NEW.seq);
END;

CREATE TRIGGER events_of_memory_states AFTER UPDATE OF state ON memory_dynamics
WHEN NEW.state <> OLD.state AND NEW.state <> 'queued' AND NEW.generation_no IS NULL
  AND (SELECT is_on FROM event_feed) = 1 BEGIN
  INSERT INTO events (at, kind, memory)
    VALUES (CAST(round(unixepoch('subsec') * 1000) AS INTEGER), iif(NEW.state = 'ready', 1, 2), NEW.seq);
END;

CREATE TRIGGER events_of_changed_memories AFTER UPDATE OF version ON memories
WHEN NEW.version <> OLD.version AND (SELECT is_on FROM event_feed) = 1
  AND (SELECT generation_no FROM memory_dynamics WHERE seq = NEW.seq) IS NULL BEGIN
  INSERT INTO events (at, kind, memory) VALUES (NEW.updated_at, 3, NEW.seq);
END;

CREATE TRIGGER events_of_memory_status AFTER UPDATE OF status ON memory_dynamics
WHEN NEW.status <> OLD.status AND NEW.status <> 'active' AND NEW.generation_no IS NULL
  AND (SELECT is_on FROM event_feed) = 1 BEGIN
  INSERT INTO events (at, kind, memory)
    VALUES (CAST(round(unixepoch('subsec') * 1000) AS INTEGER),
      CASE NEW.status WHEN 'superseded' THEN 4 WHEN 'contradicted' THEN 5 ELSE 6 END, NEW.seq);
END;

-- BEFORE, as the foreign key deletes the dynamics with the row. A memory that has expired is told as such.
CREATE TRIGGER events_of_deleted_memories BEFORE DELETE ON memories
WHEN (SELECT is_on FROM event_feed) = 1
  AND (SELECT generation_no FROM memory_dynamics WHERE seq = OLD.seq) IS NULL BEGIN
  INSERT INTO events (at, kind, user_no, subject)
    VALUES (CAST(round(unixepoch('subsec') * 1000) AS INTEGER),
      iif(OLD.expires_at > 0 AND OLD.expires_at <= unixepoch('subsec') * 1000, 7, 8), OLD.user_no,
      coalesce(unhex(replace(OLD.id, '-', '')), OLD.id));
END;

CREATE TRIGGER events_of_stored_documents AFTER INSERT ON documents
WHEN (SELECT is_on FROM event_feed) = 1 BEGIN
  INSERT INTO events (at, kind, user_no, subject)
    VALUES (CAST(round(unixepoch('subsec') * 1000) AS INTEGER), 9,
      (SELECT user_no FROM users WHERE user_id = NEW.user_id), coalesce(unhex(replace(NEW.id, '-', '')), NEW.id));
END;

-- A reading that failed while an earlier one stays shown leaves the state `ready`, with the error beside it.
CREATE TRIGGER events_of_document_states AFTER UPDATE OF state ON documents
WHEN NEW.state <> OLD.state AND NEW.state IN ('ready', 'empty', 'failed', 'deleting')
  AND (SELECT is_on FROM event_feed) = 1 BEGIN
  INSERT INTO events (at, kind, user_no, subject)
    VALUES (CAST(round(unixepoch('subsec') * 1000) AS INTEGER),
      CASE WHEN NEW.state = 'deleting' THEN 12 WHEN NEW.state = 'failed' OR NEW.error_code IS NOT NULL THEN 11
        ELSE 10 END,
      (SELECT user_no FROM users WHERE user_id = NEW.user_id), coalesce(unhex(replace(NEW.id, '-', '')), NEW.id));
END;

CREATE TRIGGER events_of_dead_jobs AFTER UPDATE OF state ON jobs
WHEN NEW.state = 'dead' AND OLD.state <> 'dead' AND (SELECT is_on FROM event_feed) = 1 BEGIN
  INSERT INTO events (at, kind, user_no, subject)
    VALUES (CAST(round(unixepoch('subsec') * 1000) AS INTEGER), 13,
      coalesce((SELECT user_no FROM memories WHERE seq = NEW.memory),
        (SELECT u.user_no FROM documents o JOIN users u ON u.user_id = o.user_id WHERE o.document_no = NEW.document)),
      NEW.uuid);
END;
