-- Who wrote an item of a session log: a number of `writers`; NULL in rows from before.
ALTER TABLE session_log_items ADD COLUMN writer_no INTEGER;
CREATE INDEX session_log_items_by_writer ON session_log_items (writer_no, log_no) WHERE writer_no > 0;
