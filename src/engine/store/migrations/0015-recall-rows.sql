-- Candidates of recalls are about a kilobyte each. In a table without rowids a row beyond a quarter of a page puts its end
-- on a page of its own, so a recall took 54 kB in place of 17.
CREATE TABLE recall_candidates_in_rows (
  recall_no INTEGER NOT NULL REFERENCES recalls (recall_no) ON DELETE CASCADE,
  place     INTEGER NOT NULL,                         -- among hits and cut candidates together, from 0
  memory    INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  data      TEXT NOT NULL,                            -- JSON: id, scores, features, adjustments
  PRIMARY KEY (recall_no, place)
) STRICT;
INSERT INTO recall_candidates_in_rows SELECT recall_no, place, memory, data FROM recall_candidates;
DROP TABLE recall_candidates;
ALTER TABLE recall_candidates_in_rows RENAME TO recall_candidates;
CREATE INDEX recall_candidates_by_memory ON recall_candidates (memory);
