-- Sessions of browsers: what a key or a token was exchanged for. Times are Unix milliseconds.
CREATE TABLE sessions (
  digest     BLOB PRIMARY KEY CHECK (length(digest) = 32), -- SHA-256 of the session's secret, which has 256 random bits
  key_id     TEXT NOT NULL,                                -- the holder's, as in `audit`
  holder     TEXT NOT NULL,                                -- JSON: in whose name the session's requests are made
  bound_to   BLOB,                                         -- of OM_API_KEY alone: SHA-256 of the secret and the key's digest
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_key ON sessions (key_id, created_at);
