-- Limits of a tenant, or of one key in it, in place of those of the settings.
CREATE TABLE limits (
  tenant_id TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  key_id    TEXT NOT NULL,                            -- '' for the tenant itself and all of its keys
  name      TEXT NOT NULL,
  value     INTEGER NOT NULL CHECK (value >= 0),      -- 0 for no limit
  PRIMARY KEY (tenant_id, key_id, name)
) STRICT, WITHOUT ROWID;
