-- The recall log: a row for each answer, and one for each memory that it weighed. No text of a memory is in it. Rows
-- about a memory go with the memory; the head of its recall then still lists its id.
CREATE TABLE recalls (
  recall_no INTEGER PRIMARY KEY,                      -- rises with time, so the oldest leave first
  recall_id TEXT NOT NULL UNIQUE,                     -- UUID that the answer named
  asked_at  INTEGER NOT NULL,
  users     TEXT NOT NULL,                            -- JSON array of the users that the query named; [] for none
  sessions  TEXT NOT NULL,                            -- the same of sessions
  head      TEXT NOT NULL,                            -- JSON: what was asked, by which weights, and counts
  bytes     INTEGER NOT NULL                          -- of this row and its candidates, when they were written
) STRICT;
CREATE INDEX recalls_by_time ON recalls (asked_at);

CREATE TABLE recall_candidates (
  recall_no INTEGER NOT NULL REFERENCES recalls (recall_no) ON DELETE CASCADE,
  place     INTEGER NOT NULL,                         -- among hits and cut candidates together, from 0
  memory    INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  data      TEXT NOT NULL,                            -- JSON: id, scores, features, adjustments
  PRIMARY KEY (recall_no, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX recall_candidates_by_memory ON recall_candidates (memory);

CREATE TABLE recall_feedback (
  recall_no INTEGER NOT NULL REFERENCES recalls (recall_no) ON DELETE CASCADE,
  memory    INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  verdict   TEXT NOT NULL,                            -- one of FEEDBACK_VERDICTS
  given_at  INTEGER NOT NULL,
  PRIMARY KEY (recall_no, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX recall_feedback_by_memory ON recall_feedback (memory);

-- One row: the sum of recalls.bytes, so that no batch has to add it up.
CREATE TABLE recall_total (
  row_no INTEGER PRIMARY KEY CHECK (row_no = 1),
  bytes  INTEGER NOT NULL
) STRICT;
INSERT INTO recall_total (row_no, bytes) VALUES (1, 0);
CREATE TRIGGER recall_total_rises AFTER INSERT ON recalls BEGIN
  UPDATE recall_total SET bytes = bytes + NEW.bytes;
END;
CREATE TRIGGER recall_total_falls AFTER DELETE ON recalls BEGIN
  UPDATE recall_total SET bytes = bytes - OLD.bytes;
END;
