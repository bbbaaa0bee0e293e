-- What all tenants and all processes share, in a schema of its own beside the tenants' schema. Each table is the table of
-- the same name in the control database's file (../migrations), whose columns mean the same here, or in a file of
-- counters. Times are Unix milliseconds.

CREATE TABLE schema_version (
  version integer NOT NULL
);
INSERT INTO schema_version (version) VALUES (0);

CREATE TABLE tenants (
  id         text COLLATE "C" PRIMARY KEY,
  created_at bigint NOT NULL
);

CREATE TABLE keys (
  id           text COLLATE "C" PRIMARY KEY,
  role         text COLLATE "C" NOT NULL CHECK (role IN ('read', 'add', 'write', 'admin')),
  label        text COLLATE "C" NOT NULL DEFAULT '',
  digest       bytea NOT NULL CHECK (length(digest) = 32),
  user_id      text COLLATE "C" CHECK (user_id <> ''),
  tags         text COLLATE "C" NOT NULL DEFAULT '[]',
  created_at   bigint NOT NULL,
  expires_at   bigint,
  last_used_at bigint,
  revoked_at   bigint
);

CREATE TABLE key_tenants (
  key_id    text COLLATE "C" NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
  place     bigint NOT NULL,
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  PRIMARY KEY (key_id, place),
  UNIQUE (key_id, tenant_id)
);
CREATE INDEX key_tenants_by_tenant ON key_tenants (tenant_id);

CREATE TABLE settings (
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  name      text COLLATE "C" NOT NULL,
  value     text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, name)
);

-- One row. `generation` grows with every change of tenants, keys, limits or settings, in the same transaction: a process
-- whose number is another one reads them again. `writes` grows with every write, whose lock this row is.
CREATE TABLE access_generation (
  id         integer PRIMARY KEY CHECK (id = 1),
  generation bigint NOT NULL,
  writes     bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO access_generation (id, generation, writes) VALUES (1, 0, 0);

CREATE TABLE limits (
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  key_id    text COLLATE "C" NOT NULL,
  name      text COLLATE "C" NOT NULL,
  value     bigint NOT NULL CHECK (value >= 0),
  PRIMARY KEY (tenant_id, key_id, name)
);

CREATE TABLE audit (
  audit_no bigint PRIMARY KEY,
  at       bigint NOT NULL,
  key_id   text COLLATE "C" NOT NULL,
  action   text COLLATE "C" NOT NULL,
  detail   text COLLATE "C" NOT NULL,
  hash     bytea NOT NULL
);
CREATE TABLE store_info (
  key   text COLLATE "C" PRIMARY KEY,
  value text COLLATE "C" NOT NULL
);

-- The highest number that `audit` has had, as SQLite keeps it: records that are cut off its end are missed.
CREATE TABLE sqlite_sequence (
  name text COLLATE "C" PRIMARY KEY,
  seq  bigint NOT NULL
);
CREATE FUNCTION keep_audit_number() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('INSERT INTO %I.sqlite_sequence AS s (name, seq) VALUES (''audit'', $1)
    ON CONFLICT (name) DO UPDATE SET seq = greatest(s.seq, excluded.seq)', TG_TABLE_SCHEMA) USING NEW.audit_no;
  RETURN NULL;
END $$;
CREATE TRIGGER keep_audit_number AFTER INSERT ON audit FOR EACH ROW EXECUTE FUNCTION keep_audit_number();

CREATE TABLE sessions (
  digest     bytea PRIMARY KEY CHECK (length(digest) = 32),
  key_id     text COLLATE "C" NOT NULL,
  holder     text COLLATE "C" NOT NULL,
  bound_to   bytea,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX sessions_by_key ON sessions (key_id, created_at);

CREATE TABLE federation_servers (
  tenant_id     text COLLATE "C" NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  name          text COLLATE "C" NOT NULL,
  url           text COLLATE "C" NOT NULL,
  key           text COLLATE "C",
  remote_tenant text COLLATE "C",
  created_at    bigint NOT NULL,
  PRIMARY KEY (tenant_id, name)
);

-- Counters that the nodes share (control/shared-counts.ts), in place of files. `tenant` is the number of the counters
-- here, by which every statement is narrowed, as by that of a tenant in the tenants' tables.
CREATE TABLE counters (
  tenant integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name   text COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE buckets (
  tenant  integer NOT NULL REFERENCES counters (tenant) ON DELETE CASCADE,
  key     text COLLATE "C" NOT NULL,
  kind    text COLLATE "C" NOT NULL,
  full_at double precision NOT NULL,
  PRIMARY KEY (tenant, key, kind)
) WITH (fillfactor = 50);

CREATE TABLE stream_counts (
  tenant    integer NOT NULL REFERENCES counters (tenant) ON DELETE CASCADE,
  process   text COLLATE "C" NOT NULL,
  tenant_id text COLLATE "C" NOT NULL,
  streams   bigint NOT NULL,
  told_at   double precision NOT NULL,
  PRIMARY KEY (tenant, process, tenant_id)
);

CREATE TABLE slots (
  tenant   integer NOT NULL REFERENCES counters (tenant) ON DELETE CASCADE,
  slot     bigint NOT NULL,
  requests bigint NOT NULL,
  tokens   bigint NOT NULL,
  PRIMARY KEY (tenant, slot)
);
CREATE TABLE breaker (
  tenant    integer PRIMARY KEY REFERENCES counters (tenant) ON DELETE CASCADE,
  failures  bigint NOT NULL DEFAULT 0,
  opened_at bigint NOT NULL DEFAULT 0,
  open_ms   bigint NOT NULL DEFAULT 0,
  probe_at  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE started (
  tenant integer PRIMARY KEY REFERENCES counters (tenant) ON DELETE CASCADE,
  at     bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE SEQUENCE flight_numbers;
CREATE FUNCTION next_number(of_table text) RETURNS bigint LANGUAGE sql VOLATILE
  AS $$ SELECT nextval('flight_numbers') $$;
CREATE TABLE flights (
  tenant integer NOT NULL REFERENCES counters (tenant) ON DELETE CASCADE,
  flight bigint NOT NULL DEFAULT next_number('flights'),
  tokens bigint NOT NULL,
  at     bigint NOT NULL,
  PRIMARY KEY (tenant, flight)
);
CREATE TABLE told (
  tenant    integer NOT NULL REFERENCES counters (tenant) ON DELETE CASCADE,
  kind      text COLLATE "C" NOT NULL,
  remaining bigint NOT NULL,
  reserve   bigint NOT NULL,
  at        bigint NOT NULL,
  reset_ms  bigint NOT NULL,
  PRIMARY KEY (tenant, kind)
);

-- The rows that a file of a provider's budget is made with.
CREATE FUNCTION begin_counters() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO breaker (tenant) VALUES (NEW.tenant);
  INSERT INTO started (tenant) VALUES (NEW.tenant);
  RETURN NULL;
END $$;
CREATE TRIGGER begin_counters AFTER INSERT ON counters FOR EACH ROW EXECUTE FUNCTION begin_counters();
