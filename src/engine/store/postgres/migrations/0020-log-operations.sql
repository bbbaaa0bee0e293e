-- As migration 0023 of a tenant's file.
ALTER TABLE session_logs ADD COLUMN operations_no bigint;
