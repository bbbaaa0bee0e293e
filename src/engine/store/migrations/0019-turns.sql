-- 1 for a part of a document. Parts have no neighbours in their session and are no neighbours of others: without this,
-- an add to a session with a large document went through all of its parts. Parts of earlier versions keep 0, and are
-- passed over one by one as before.
ALTER TABLE memories ADD COLUMN is_part INTEGER NOT NULL DEFAULT 0;
CREATE INDEX memories_by_turn ON memories (user_no, session_id, event_time) WHERE is_part = 0 AND session_id <> '';
