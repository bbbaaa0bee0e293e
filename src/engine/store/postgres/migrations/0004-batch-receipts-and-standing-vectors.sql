-- As migration 0016 of a tenant's file.

CREATE TABLE batch_receipts (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  id         text COLLATE "C" NOT NULL,
  first_item bigint NOT NULL,
  key_id     text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  items      text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, id, first_item)
);
CREATE INDEX batch_receipts_by_age ON batch_receipts (tenant, created_at);

CREATE TABLE standing_vectors (
  tenant    integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  query_no  bigint NOT NULL,
  model_no  bigint NOT NULL,
  embedding bytea NOT NULL,
  PRIMARY KEY (tenant, query_no),
  FOREIGN KEY (tenant, query_no) REFERENCES standing_queries (tenant, query_no) ON DELETE CASCADE
);
CREATE INDEX standing_vectors_by_model ON standing_vectors (tenant, model_no);

ALTER TABLE batch_receipts ENABLE ROW LEVEL SECURITY;
ALTER TABLE batch_receipts FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON batch_receipts USING (tenant = present_tenant());
ALTER TABLE standing_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE standing_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON standing_vectors USING (tenant = present_tenant());
