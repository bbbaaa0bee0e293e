-- Changes of a session log that were named by their caller are stored under `operations_no`, NULL for the log's own
-- number. A log that was cleared hands this number to the log that takes its place, so that no row of a change is written
-- anew. 0 stands for no log: in a log that was cleared, or whose changes were erased, and in tombstones.
ALTER TABLE session_logs ADD COLUMN operations_no INTEGER;
