-- Reflections: what a language model concluded from memories of one user. Each is a memory with `derived_from` edges that are automatic,
-- which no other memory has. A row here is one reflecting: owed while it has a job, else how far the user's last one had read.

CREATE TABLE reflections (
  reflection_no INTEGER PRIMARY KEY,
  user_no       INTEGER NOT NULL REFERENCES users (user_no) ON DELETE CASCADE,
  session_id    TEXT,                                 -- NULL for all of them; with one it says nothing of how far was read
  job           INTEGER REFERENCES jobs (seq) ON DELETE CASCADE,
  up_to         INTEGER                               -- the last memory of the file when it read; NULL while owed
) STRICT;
CREATE INDEX reflections_by_user ON reflections (user_no);
CREATE UNIQUE INDEX reflections_by_job ON reflections (job);

-- Questions to a language model, so that they can be counted among the many.
CREATE INDEX jobs_of_contradictions ON jobs (state) WHERE kind = 'contradictions';
CREATE INDEX jobs_of_reflections    ON jobs (state) WHERE kind = 'reflection';

CREATE INDEX edges_of_reflections ON edges (src) WHERE type = 'derived_from' AND automatic = 1;
