-- Evaluation sets: questions with what their answers must and must not hold.
CREATE TABLE eval_sets (
  set_no     INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT NOT NULL UNIQUE,
  guard      INTEGER NOT NULL,                        -- 1: a change of the query defaults that lowers it is refused
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE eval_items (
  set_no  INTEGER NOT NULL,
  place   INTEGER NOT NULL,                           -- from 0, with gaps where a user was erased
  user_id TEXT,
  item    TEXT NOT NULL,                              -- JSON without the user
  PRIMARY KEY (set_no, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX eval_items_by_user ON eval_items (user_id) WHERE user_id IS NOT NULL;

-- Runs of sets, with numbers and no content.
CREATE TABLE eval_runs (
  run_no INTEGER PRIMARY KEY AUTOINCREMENT,
  set_no INTEGER NOT NULL,
  run    TEXT NOT NULL                                -- JSON
) STRICT;
CREATE INDEX eval_runs_by_set ON eval_runs (set_no, run_no);
