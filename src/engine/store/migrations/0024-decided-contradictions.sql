-- Which contradictions a memory lost is asked whenever a link of it goes. A hub may have any number of undecided ones,
-- and of won ones, so the few lost ones have an index of their own, by the memory that lost.
CREATE INDEX edges_lost ON edges (CASE winner WHEN src THEN dst ELSE src END)
  WHERE type = 'contradicts' AND winner IS NOT NULL;
-- The walk down a chain reads a few of the memories that each memory superseded, one after the other.
CREATE INDEX edges_superseding ON edges (src, dst) WHERE type = 'supersedes';
