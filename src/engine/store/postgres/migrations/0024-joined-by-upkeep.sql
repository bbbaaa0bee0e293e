-- Blocks of words are joined by the upkeep of a worker, some rows in each commit, and no longer by the commit of an add.

-- Where the joining of the last of the `joined` ranges goes on: the number of the first memory whose terms were not all
-- looked at, and how many of its terms were. Null while no range is being joined. A range counts as joined from the
-- beginning of that work, since a change of its memories takes its blocks whether they are joined yet or not.
ALTER TABLE word_totals
  ADD COLUMN joining bigint,
  ADD COLUMN joining_terms integer NOT NULL DEFAULT 0;

-- A process of an earlier version that still runs calls the function in commits of adds.
CREATE OR REPLACE FUNCTION join_word_blocks(of_tenant integer, place bigint) RETURNS void LANGUAGE sql AS '';
