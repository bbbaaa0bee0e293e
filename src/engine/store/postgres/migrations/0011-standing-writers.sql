-- As migration 0020 of a tenant's file.
ALTER TABLE standing_queries ADD COLUMN writer_no bigint;
CREATE INDEX standing_queries_by_writer ON standing_queries (tenant, writer_no) WHERE writer_no > 0;
ALTER TABLE webhooks ADD COLUMN writer_no bigint;
CREATE INDEX webhooks_by_writer ON webhooks (tenant, writer_no) WHERE writer_no > 0;
