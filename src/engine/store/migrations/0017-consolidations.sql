-- Consolidations: memories of one user that say nearly the same, or follow one topic, gathered into a memory with automatic
-- `derived_from` edges to them. The sources stay as they are, and give way to the gathered memory in a ranking that has
-- both. A row without a memory was undone: it keeps its sources from being gathered again.
CREATE TABLE consolidations (
  consolidation_no INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT NOT NULL UNIQUE,                    -- UUIDv7
  run_id     TEXT NOT NULL,                           -- id of the job that made it
  user_no    INTEGER NOT NULL REFERENCES users (user_no) ON DELETE CASCADE,
  memory     INTEGER UNIQUE REFERENCES memories (seq) ON DELETE SET NULL,
  method     TEXT NOT NULL,                           -- sentences, model
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX consolidations_by_user ON consolidations (user_no);
CREATE INDEX consolidations_by_run  ON consolidations (run_id);

-- A memory is a source of one consolidation at most.
CREATE TABLE consolidation_sources (
  source           INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  consolidation_no INTEGER NOT NULL REFERENCES consolidations (consolidation_no) ON DELETE CASCADE
) STRICT;
CREATE INDEX consolidation_sources_by_no ON consolidation_sources (consolidation_no);

-- Nothing is known any more of a consolidation one of whose sources was erased.
CREATE TRIGGER consolidations_of_erased_sources BEFORE DELETE ON memories
WHEN EXISTS (SELECT 1 FROM consolidation_sources WHERE source = OLD.seq) BEGIN
  DELETE FROM consolidations WHERE consolidation_no =
    (SELECT consolidation_no FROM consolidation_sources WHERE source = OLD.seq);
END;

-- A gathered memory repeats what was said, and so answers no standing query anew.
CREATE TRIGGER standing_without_consolidations AFTER INSERT ON standing_due
WHEN EXISTS (SELECT 1 FROM consolidations WHERE memory = NEW.memory) BEGIN
  DELETE FROM standing_due WHERE memory = NEW.memory;
END;

-- Runs of consolidating. A run goes through users by number, and through the memories of each in time. Its row says how
-- far it came, and goes with its job.
CREATE TABLE consolidation_runs (
  job       INTEGER PRIMARY KEY REFERENCES jobs (seq) ON DELETE CASCADE,
  user_no   INTEGER REFERENCES users (user_no) ON DELETE CASCADE, -- NULL for all users
  again     INTEGER NOT NULL,                         -- 1 to gather again what was undone
  at_user   INTEGER NOT NULL,                         -- the place that it reached: a user,
  at_time   INTEGER NOT NULL,                         -- an event time,
  at_memory INTEGER NOT NULL,                         -- and a memory of that time
  bytes     INTEGER NOT NULL DEFAULT 0,               -- bytes of text that it read
  made      INTEGER NOT NULL DEFAULT 0,               -- number of consolidations that it made
  ended     TEXT,                                     -- complete, cut (at a bound); NULL until it ends
  up_to     INTEGER NOT NULL                          -- last memory of the file when it began
) STRICT;
CREATE INDEX consolidation_runs_of_user ON consolidation_runs (user_no);

CREATE INDEX jobs_of_consolidations ON jobs (state) WHERE kind = 'consolidation';
