-- Who registered a standing query or a webhook: a number of `writers`; NULL in rows from before, and where no caller
-- asked for it.
ALTER TABLE standing_queries ADD COLUMN writer_no INTEGER;
CREATE INDEX standing_queries_by_writer ON standing_queries (writer_no) WHERE writer_no > 0;
ALTER TABLE webhooks ADD COLUMN writer_no INTEGER;
CREATE INDEX webhooks_by_writer ON webhooks (writer_no) WHERE writer_no > 0;
