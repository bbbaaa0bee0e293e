-- Keys of sealed files, each wrapped by the master key. Absent in a data folder that is stored in clear.

CREATE TABLE data_keys (
  owner        TEXT PRIMARY KEY,                     -- a tenant's id; '' for the files that tenants share
  cipher       TEXT NOT NULL,
  master_id    TEXT NOT NULL,                        -- fingerprint of the master key
  wrapped      BLOB NOT NULL,
  next_wrapped BLOB,                                 -- while the data key changes: the key to come
  next_cipher  TEXT
) STRICT, WITHOUT ROWID;
