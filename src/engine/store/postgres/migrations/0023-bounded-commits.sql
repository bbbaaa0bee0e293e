-- As migration 0025 of a tenant's file.
CREATE INDEX memory_revisions_status ON memory_revisions (tenant, memory, status, version);
CREATE INDEX memory_revisions_ends ON memory_revisions (tenant, memory, version)
  WHERE by_link = 0 AND fields LIKE '%validTo%';
CREATE INDEX session_logs_by_session ON session_logs (tenant, session_id, user_id);
-- The newest job of a memory; in SQLite every index ends with the number of the row.
DROP INDEX jobs_by_memory;
CREATE INDEX jobs_by_memory ON jobs (tenant, memory, seq);
