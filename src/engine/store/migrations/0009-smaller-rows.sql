-- A job in 170 bytes in place of 320, its indexes included: its id as 16 bytes, and what happened to it in a short form (store/job-timeline.ts).

CREATE TABLE jobs_anew (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid           BLOB NOT NULL UNIQUE,                -- UUIDv7
  id             TEXT AS (lower(hex(substr(uuid, 1, 4)) || '-' || hex(substr(uuid, 5, 2)) || '-' || hex(substr(uuid, 7, 2)) || '-' ||
                   hex(substr(uuid, 9, 2)) || '-' || hex(substr(uuid, 11)))) VIRTUAL,   -- as callers know it; look it up by uuid
  kind           TEXT NOT NULL,                       -- memory, document, reembed, contradictions, reflection
  memory         INTEGER,                             -- seq; no foreign key, a deleted memory cancels its jobs
  step           TEXT NOT NULL,                       -- ingest, settle, encode, link, reason, done
  state          TEXT NOT NULL,                       -- queued, active, failed (waits for its next attempt), done, dead, cancelled
  priority       INTEGER NOT NULL DEFAULT 0,          -- 0 interactive, 1 bulk
  attempts       INTEGER NOT NULL DEFAULT 0,          -- of the current step, failures only
  crashes        INTEGER NOT NULL DEFAULT 0,          -- while it ran alone
  suspect        INTEGER NOT NULL DEFAULT 0,          -- was in flight at a crash: how many such may run together; 0 for no suspect
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
  timeline       TEXT NOT NULL DEFAULT '',            -- a letter an event, ms since created_at: e523l530d
  document       INTEGER,                             -- that it takes in, or that its memory belongs to
  trace_context  TEXT                                 -- W3C, of the request that it goes back to; NULL for one that is not traced
) STRICT;

INSERT INTO jobs_anew (seq, uuid, kind, memory, step, state, priority, attempts, crashes, suspect, run_at, lease_owner, lease_until,
  lease_epoch, lease_alone, dispatches, dispatched_until, error_code, error, created_at, updated_at, finished_at, timeline, document, trace_context)
SELECT seq, unhex(id, '-'), kind, memory, step, state, priority, attempts, crashes, suspect, run_at, lease_owner, lease_until,
  lease_epoch, lease_alone, dispatches, dispatched_until, error_code, error, created_at, updated_at, finished_at,
  (SELECT coalesce(group_concat(CASE value ->> 0 WHEN 'read' THEN 'r' WHEN 'settled' THEN 's' WHEN 'encoded' THEN 'e' WHEN 'linked' THEN 'l'
      WHEN 'reasoned' THEN 'a' WHEN 'done' THEN 'd' WHEN 'failed' THEN 'f' WHEN 'dead' THEN 'x' WHEN 'crashed' THEN 'c'
      WHEN 'cancelled' THEN 'n' WHEN 'requeued' THEN 'q' WHEN 'retried' THEN 't' END || ((value ->> 1) - created_at), '' ORDER BY key), '')
   FROM json_each('[' || timeline || ']') WHERE key > 0), document, trace_context
FROM jobs ORDER BY seq;

-- Numbers are never given twice, also where the last rows were removed.
INSERT INTO sqlite_sequence (name, seq)
SELECT 'jobs_anew', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'jobs_anew');
UPDATE sqlite_sequence SET seq = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'jobs'), 0) WHERE name = 'jobs_anew';

-- Where a table is dropped its rows are deleted, and with them whatever refers to them.
CREATE TEMP TABLE kept_reflections AS SELECT reflection_no, job FROM reflections WHERE job IS NOT NULL;
UPDATE reflections SET job = NULL WHERE job IS NOT NULL;
DROP TABLE jobs;
ALTER TABLE jobs_anew RENAME TO jobs;
UPDATE reflections SET job = kept.job FROM kept_reflections kept WHERE kept.reflection_no = reflections.reflection_no;
DROP TABLE kept_reflections;

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

-- Of a text's hash 8 bytes are kept, whatever rows from before hold; and no index says a row's number twice, which stands at its end anyway.
DROP INDEX memories_by_hash;
DROP INDEX memories_by_session;
DROP INDEX memories_by_time;
CREATE INDEX memories_by_hash    ON memories (user_no, session_id, substr(content_hash, 1, 8));
CREATE INDEX memories_by_session ON memories (user_no, session_id, event_time);
CREATE INDEX memories_by_time    ON memories (user_no, event_time);
