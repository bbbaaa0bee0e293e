-- Each query asks which of its candidates contradict each other. Few do: an index of nothing else stays small, where that of all links is read
-- for each candidate.
CREATE INDEX edges_contradicting ON edges (dst) WHERE type = 'contradicts';
