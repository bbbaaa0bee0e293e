-- A memory that waits to be encoded has no note in `standing_due`: its note is written once it is ready. Those who look
-- for work would otherwise pass over the notes of everything that waits.
DROP TRIGGER standing_of_successors;
CREATE TRIGGER standing_of_successors AFTER INSERT ON edges
WHEN NEW.type = 'supersedes' AND EXISTS (SELECT 1 FROM standing_queries)
  AND (SELECT state FROM memory_dynamics WHERE seq = NEW.src) <> 'queued' BEGIN
  INSERT OR REPLACE INTO standing_due (memory) VALUES (NEW.src);
END;
CREATE TRIGGER standing_of_queued_memories AFTER UPDATE OF state ON memory_dynamics
WHEN NEW.state = 'queued' AND OLD.state <> 'queued' AND EXISTS (SELECT 1 FROM standing_queries) BEGIN
  DELETE FROM standing_due WHERE memory = NEW.seq;
END;
DELETE FROM standing_due WHERE memory IN (SELECT seq FROM memory_dynamics WHERE state = 'queued');

-- Deliveries that wait are bounded for each webhook and for the tenant. `room` of them may be added before those that
-- wait are counted again, which was done at `counted_at`; `dropped` events found no room, the last one at `dropped_at`.
ALTER TABLE webhooks ADD COLUMN room INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN counted_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN dropped_at INTEGER;
ALTER TABLE webhook_cursor ADD COLUMN room INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhook_cursor ADD COLUMN counted_at INTEGER NOT NULL DEFAULT 0;
