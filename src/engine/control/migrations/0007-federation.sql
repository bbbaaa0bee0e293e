-- Other Cairn servers that questions of a tenant may be sent to. A key stands here only in a sealed file.
CREATE TABLE federation_servers (
  tenant_id     TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  name          TEXT NOT NULL,
  url           TEXT NOT NULL,                        -- without a slash at its end
  key           TEXT,                                 -- sent to that server; NULL for none
  remote_tenant TEXT,                                 -- tenant that is asked there; NULL for the first of its key
  created_at    INTEGER NOT NULL,                     -- Unix ms
  PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;
