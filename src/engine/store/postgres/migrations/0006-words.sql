-- The word index. Its rows are those of the FTS5 table `memory_text` of a tenant's file; a term is one of FTS5's first
-- partition (word-index/terms.ts).

-- The rows that have a term, 256 consecutive numbers of memories to a block. `data` has them as FTS5 encodes them: the
-- number of a row, whole for the first and then the difference, twice the size of its positions, and the positions.
CREATE TABLE word_blocks (
  tenant integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  term   text COLLATE "C" NOT NULL,
  block  bigint NOT NULL,
  rows   bigint NOT NULL,
  data   bytea NOT NULL,
  PRIMARY KEY (tenant, term, block)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

-- The number of terms in each column of a row, as FTS5 keeps it.
CREATE TABLE memory_text_docsize (
  tenant integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  id     bigint NOT NULL,
  sz     bytea NOT NULL,
  PRIMARY KEY (tenant, id)
);

-- The terms of a row, joined by spaces, by which its blocks are found when it changes.
CREATE TABLE word_rows (
  tenant integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  id     bigint NOT NULL,
  terms  text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, id)
);

-- The number of rows, and of terms in all their columns.
CREATE TABLE word_totals (
  tenant integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  row_no bigint NOT NULL,
  rows   bigint NOT NULL,
  terms  bigint NOT NULL,
  PRIMARY KEY (tenant, row_no)
) WITH (fillfactor = 50);

CREATE FUNCTION begin_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO word_totals (tenant, row_no, rows, terms) VALUES (NEW.tenant, 1, 0, 0);
  RETURN NULL;
END $$;
-- After `begin_tenant`, which sets the tenant of the session: triggers run in the order of their names.
CREATE TRIGGER begin_words AFTER INSERT ON tenants FOR EACH ROW EXECUTE FUNCTION begin_words();

-- The last number that a table has given, as SQLite keeps it.
CREATE VIEW sqlite_sequence WITH (security_invoker = true) AS SELECT tenant, name, last AS seq FROM numbers;

ALTER TABLE word_blocks ENABLE ROW LEVEL SECURITY;
ALTER TABLE word_blocks FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON word_blocks USING (tenant = present_tenant());
ALTER TABLE memory_text_docsize ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_text_docsize FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON memory_text_docsize USING (tenant = present_tenant());
ALTER TABLE word_rows ENABLE ROW LEVEL SECURITY;
ALTER TABLE word_rows FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON word_rows USING (tenant = present_tenant());
ALTER TABLE word_totals ENABLE ROW LEVEL SECURITY;
ALTER TABLE word_totals FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON word_totals USING (tenant = present_tenant());

-- Tables by their names, as SQLite lists them.
CREATE VIEW sqlite_schema AS
  SELECT relname::text COLLATE "C" AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace;
