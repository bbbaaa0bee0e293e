-- Blocks of words grow with age. A query reads the blocks of its words, which lie far apart, and a common word has one
-- for each 256 memories. 16 blocks of one term that are written no more are joined into one row.

-- The sizes of the blocks that were joined into `data`, in their order, with commas; empty for a single block. A joined
-- row has the number of the first block that it may have, a multiple of 16, and then the term has no other row for the
-- next 15.
ALTER TABLE word_blocks ADD COLUMN parts text COLLATE "C" NOT NULL DEFAULT '';
-- Joined rows have up to some kilobytes. They stay in the table's pages, as they are: to take bytes from elsewhere and
-- to decompress them costs more than to read them.
ALTER TABLE word_blocks ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE word_blocks SET (toast_tuple_target = 8160);
-- The number of ranges of 4,096 memories, from the first, whose blocks were joined.
ALTER TABLE word_totals ADD COLUMN joined bigint NOT NULL DEFAULT 0;

-- Joins the blocks of a range. Terms that are in one block only stay as they are.
CREATE FUNCTION join_word_blocks(of_tenant integer, place bigint) RETURNS void LANGUAGE sql VOLATILE AS $$
  UPDATE word_totals SET joined = place + 1 WHERE tenant = of_tenant;
  WITH words AS MATERIALIZED (
    SELECT t.term FROM word_rows AS r CROSS JOIN LATERAL unnest(string_to_array(r.terms, ' ')) AS t (term)
    WHERE r.tenant = of_tenant AND r.id >= 4096 * place AND r.id < 4096 * (place + 1)
    GROUP BY t.term HAVING min(r.id / 256) < max(r.id / 256)
  ), small AS (
    DELETE FROM word_blocks AS b USING words AS w
    WHERE b.tenant = of_tenant AND b.term = w.term AND b.block >= 16 * place AND b.block < 16 * (place + 1)
    RETURNING b.term, b.block, b.rows, b.data
  )
  INSERT INTO word_blocks (tenant, term, block, rows, data, parts)
  SELECT of_tenant, term, 16 * place, sum(rows), string_agg(data, '' ORDER BY block),
    string_agg(octet_length(data)::text, ',' ORDER BY block)
  FROM small GROUP BY term;
$$;

-- The turn before a memory is found in the index alone. An index of a file ends with the number of the row by itself.
DROP INDEX memories_by_turn;
CREATE INDEX memories_by_turn ON memories (tenant, user_no, session_id, event_time, seq)
  WHERE is_part = 0 AND session_id <> '';
