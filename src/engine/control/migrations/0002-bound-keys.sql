-- Keys get the role `add`, several tenants, an owner that they cannot leave, an end and a time of last use. The table is
-- made anew, because SQLite cannot change a CHECK. Tenants of a key stand in a table of their own, as one may be erased
-- while the key goes on with the others.

CREATE TABLE keys_anew (
  id           TEXT PRIMARY KEY,                     -- public: the middle part of the secret
  role         TEXT NOT NULL CHECK (role IN ('read', 'add', 'write', 'admin')),
  label        TEXT NOT NULL DEFAULT '',             -- name that a person gave the key
  digest       BLOB NOT NULL CHECK (length(digest) = 32), -- SHA-256 of the secret, which has 256 random bits: no salt
  user_id      TEXT CHECK (user_id <> ''),           -- the only user whose memories the key reaches; NULL for all users
  tags         TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tags)), -- tags that all memories of the key carry
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER,                              -- from then on the key is refused; NULL for never
  last_used_at INTEGER,                              -- up to a minute late
  revoked_at   INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO keys_anew (id, role, label, digest, created_at, revoked_at)
  SELECT id, role, label, digest, created_at, revoked_at FROM keys;

CREATE TABLE key_tenants (
  key_id    TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
  place     INTEGER NOT NULL,                        -- from 0; a request that names no tenant is for the lowest
  tenant_id TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  PRIMARY KEY (key_id, place),
  UNIQUE (key_id, tenant_id)
) STRICT, WITHOUT ROWID;

CREATE TEMP TABLE former_tenants AS SELECT id, tenant_id FROM keys;
DROP TABLE keys;
ALTER TABLE keys_anew RENAME TO keys;
INSERT INTO key_tenants (key_id, place, tenant_id) SELECT id, 0, tenant_id FROM former_tenants;
DROP TABLE former_tenants;
CREATE INDEX key_tenants_by_tenant ON key_tenants (tenant_id);
