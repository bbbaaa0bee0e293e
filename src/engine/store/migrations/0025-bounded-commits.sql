-- What a memory was before links changed it is asked whenever such a link comes or goes. A memory may have any number of
-- revisions, so its latest one with a status, and those in which a caller set the end of validity, are found by an index.
CREATE INDEX memory_revisions_status ON memory_revisions (memory, status, version);
CREATE INDEX memory_revisions_ends ON memory_revisions (memory, version) WHERE by_link = 0 AND fields LIKE '%validTo%';
-- Logs are erased by their session, too, whoever's they are.
CREATE INDEX session_logs_by_session ON session_logs (session_id, user_id);
