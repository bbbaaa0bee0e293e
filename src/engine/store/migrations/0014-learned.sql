-- Weights of the ranking that were learned from feedback, each a proposal until a person accepts it.
CREATE TABLE learned (
  learned_no INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT NOT NULL UNIQUE,
  at         INTEGER NOT NULL,
  state      TEXT NOT NULL,                           -- one of LEARNED_STATES
  data       TEXT NOT NULL                            -- JSON: the changes, the report, and what they replaced
) STRICT;
