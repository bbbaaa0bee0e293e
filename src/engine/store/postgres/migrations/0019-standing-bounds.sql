-- As migration 0022 of a tenant's file.
CREATE OR REPLACE FUNCTION standing_of_successors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM memory_dynamics d
      WHERE d.tenant = NEW.tenant AND d.seq = NEW.src AND d.state <> 'queued') THEN
    PERFORM owe_standing(NEW.tenant, NEW.src);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION standing_of_queued_memories() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM standing_due s WHERE s.tenant = NEW.tenant AND s.memory = NEW.seq;
  RETURN NULL;
END $$;
CREATE TRIGGER standing_of_queued_memories AFTER UPDATE OF state ON memory_dynamics
  FOR EACH ROW WHEN (NEW.state = 'queued' AND OLD.state <> 'queued') EXECUTE FUNCTION standing_of_queued_memories();
DO $$
DECLARE one integer;
BEGIN
  FOR one IN SELECT tenant FROM tenants LOOP
    PERFORM set_config('cairn.tenant', one::text, true);
    DELETE FROM standing_due s WHERE s.tenant = one AND EXISTS (SELECT 1 FROM memory_dynamics d
      WHERE d.tenant = one AND d.seq = s.memory AND d.state = 'queued');
  END LOOP;
  PERFORM set_config('cairn.tenant', '', true);
END $$;

ALTER TABLE webhooks ADD COLUMN room bigint NOT NULL DEFAULT 0, ADD COLUMN counted_at bigint NOT NULL DEFAULT 0,
  ADD COLUMN dropped bigint NOT NULL DEFAULT 0, ADD COLUMN dropped_at bigint;
ALTER TABLE webhook_cursor ADD COLUMN room bigint NOT NULL DEFAULT 0, ADD COLUMN counted_at bigint NOT NULL DEFAULT 0;
