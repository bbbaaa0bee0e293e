-- What was done with tenants, keys and limits, by whom, as the `audit` of a tenant's file (store/audit-chain.ts). It
-- outlives the tenants that it tells of.
CREATE TABLE audit (
  audit_no INTEGER PRIMARY KEY AUTOINCREMENT,
  at       INTEGER NOT NULL,
  key_id   TEXT NOT NULL,                             -- as in a tenant's file; `cli` for a command on this machine
  action   TEXT NOT NULL,
  detail   TEXT NOT NULL,                             -- JSON
  hash     BLOB NOT NULL                              -- SHA-256
) STRICT;
CREATE TABLE store_info (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
