-- A block of words grows at its end without being read: the rows of new memories are appended by the server.

-- The locks come in the order in which a write takes them, so that neither waits for the other for ever.
LOCK TABLE tenants IN ACCESS EXCLUSIVE MODE;

-- The number of the last memory of a block, from which the number of the next one is counted; 0 for joined blocks, to
-- which nothing is appended.
ALTER TABLE word_blocks ADD COLUMN last bigint NOT NULL DEFAULT 0;
-- The greatest number of a memory whose words were written. No block has a row of a memory above it.
ALTER TABLE word_totals ADD COLUMN newest bigint NOT NULL DEFAULT 0;

-- An integer as SQLite and FTS5 encode it, seven bits in a byte and the highest first; below 2^35.
CREATE FUNCTION varint(n bigint) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN n < 128 THEN substr(int8send(n), 8)
    WHEN n < 16384 THEN substr(int8send(32768 | ((n >> 7) << 8) | (n & 127)), 7)
    WHEN n < 2097152 THEN substr(int8send(8421376 | ((n >> 14) << 16) | (((n >> 7) & 127) << 8) | (n & 127)), 6)
    WHEN n < 268435456 THEN substr(int8send(
      2155905024 | ((n >> 21) << 24) | (((n >> 14) & 127) << 16) | (((n >> 7) & 127) << 8) | (n & 127)), 5)
    ELSE substr(int8send(551911719040 | ((n >> 28) << 32)
      | (((n >> 21) & 127) << 24) | (((n >> 14) & 127) << 16) | (((n >> 7) & 127) << 8) | (n & 127)), 4)
  END
$$;

-- New rows come only into a tenant's newest block and into later ones, so it alone needs the number.
DO $$
DECLARE one integer; top bigint;
BEGIN
  FOR one IN SELECT tenant FROM tenants LOOP
    PERFORM set_config('cairn.tenant', one::text, true);
    SELECT coalesce(max(id), 0) INTO top FROM word_rows WHERE tenant = one;
    UPDATE word_totals SET newest = top WHERE tenant = one;
    UPDATE word_blocks AS b SET last = w.last
      FROM (SELECT t.term, max(r.id) AS last
        FROM word_rows AS r CROSS JOIN LATERAL unnest(string_to_array(r.terms, ' ')) AS t (term)
        WHERE r.tenant = one AND r.id >= top / 256 * 256 GROUP BY t.term) AS w
      WHERE b.tenant = one AND b.term = w.term AND b.block = top / 256;
  END LOOP;
  PERFORM set_config('cairn.tenant', '', true);
END $$;

-- A process of an earlier version that still runs would write blocks without the number: its writes fail.
ALTER TABLE word_blocks ALTER COLUMN last DROP DEFAULT;

-- Joins the blocks of a range. Terms that are in one block only stay as they are.
CREATE OR REPLACE FUNCTION join_word_blocks(of_tenant integer, place bigint) RETURNS void LANGUAGE sql VOLATILE AS $$
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
  INSERT INTO word_blocks (tenant, term, block, rows, last, data, parts)
  SELECT of_tenant, term, 16 * place, sum(rows), 0, string_agg(data, '' ORDER BY block),
    string_agg(octet_length(data)::text, ',' ORDER BY block)
  FROM small GROUP BY term;
$$;

-- Rows name their tenant without a foreign key, which looked the tenant up for each row that was inserted: a fifth of
-- the server's time of an add. Every write locks the tenant's row first, so it is there. A trigger deletes the rows of
-- a tenant that goes, in the place of the keys.
DO $$
DECLARE one record;
BEGIN
  FOR one IN
    SELECT k.conrelid::regclass AS table_name, k.conname FROM pg_constraint k
    WHERE k.contype = 'f' AND k.confrelid = 'tenants'::regclass
  LOOP
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.table_name, one.conname);
  END LOOP;
END $$;

CREATE FUNCTION tenant_goes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE name text;
BEGIN
  PERFORM set_config('cairn.tenant', OLD.tenant::text, true);
  -- The policy tells these tables from those of other applications in the schema, which may have a column `tenant`.
  -- The feed first: without one, no trigger notes an event of what is deleted.
  FOR name IN
    SELECT c.relname FROM pg_class c JOIN pg_policy p ON p.polrelid = c.oid AND p.polname = 'of_tenant'
    WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = TG_RELID)
    ORDER BY c.relname <> 'event_feed', c.relname
  LOOP
    EXECUTE format('DELETE FROM %I WHERE tenant = $1', name) USING OLD.tenant;
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER tenant_goes AFTER DELETE ON tenants FOR EACH ROW EXECUTE FUNCTION tenant_goes();
