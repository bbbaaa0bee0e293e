-- What all tenants share. Times are Unix milliseconds. Memories are never here: each tenant is a file of its own.

CREATE TABLE tenants (
  id         TEXT PRIMARY KEY,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A revoked key stays as a record of who could do what until when.
CREATE TABLE keys (
  id         TEXT PRIMARY KEY,                       -- public: the middle part of the secret
  tenant_id  TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  role       TEXT NOT NULL CHECK (role IN ('read', 'write', 'admin')),
  label      TEXT NOT NULL DEFAULT '',
  digest     BLOB NOT NULL CHECK (length(digest) = 32), -- SHA-256 of the secret; the secret has 256 random bits, so no salt
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_tenant ON keys (tenant_id);

CREATE TABLE settings (
  tenant_id TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  name      TEXT NOT NULL,
  value     TEXT NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;

-- One row. Grows with every change of tenants or keys, in the same transaction: a process whose cached number is behind
-- reads both tables again.
CREATE TABLE access_generation (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  generation INTEGER NOT NULL
) STRICT;
INSERT INTO access_generation (id, generation) VALUES (1, 0);
