-- The triggers of a tenant's file, each a function and its trigger, and the wall between tenants.

CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE
  AS $$ SELECT round(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

CREATE FUNCTION note_event(of_tenant integer, at bigint, kind integer, memory bigint, user_no bigint, subject bytea)
RETURNS void LANGUAGE sql VOLATILE AS $$
  INSERT INTO events (tenant, at, kind, memory, user_no, subject)
    SELECT of_tenant, $2, $3, $4, $5, $6 FROM event_feed f WHERE f.tenant = of_tenant AND f.is_on = 1
$$;

CREATE FUNCTION events_of_memory_states() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event(NEW.tenant, now_ms(), CASE NEW.state WHEN 'ready' THEN 1 ELSE 2 END, NEW.seq, NULL, NULL);
  RETURN NULL;
END $$;
CREATE TRIGGER events_of_memory_states AFTER UPDATE OF state ON memory_dynamics
  FOR EACH ROW WHEN (NEW.state <> OLD.state AND NEW.state <> 'queued' AND NEW.generation_no IS NULL)
  EXECUTE FUNCTION events_of_memory_states();

CREATE FUNCTION events_of_changed_memories() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT generation_no FROM memory_dynamics d WHERE d.tenant = NEW.tenant AND d.seq = NEW.seq) IS NULL THEN
    PERFORM note_event(NEW.tenant, NEW.updated_at, 3, NEW.seq, NULL, NULL);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER events_of_changed_memories AFTER UPDATE OF version ON memories
  FOR EACH ROW WHEN (NEW.version <> OLD.version) EXECUTE FUNCTION events_of_changed_memories();

CREATE FUNCTION events_of_memory_status() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event(NEW.tenant, now_ms(),
    CASE NEW.status WHEN 'superseded' THEN 4 WHEN 'contradicted' THEN 5 ELSE 6 END, NEW.seq, NULL, NULL);
  RETURN NULL;
END $$;
CREATE TRIGGER events_of_memory_status AFTER UPDATE OF status ON memory_dynamics
  FOR EACH ROW WHEN (NEW.status <> OLD.status AND NEW.status <> 'active' AND NEW.generation_no IS NULL)
  EXECUTE FUNCTION events_of_memory_status();

CREATE FUNCTION events_of_deleted_memories() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT generation_no FROM memory_dynamics d WHERE d.tenant = OLD.tenant AND d.seq = OLD.seq) IS NULL THEN
    PERFORM note_event(OLD.tenant, now_ms(), CASE WHEN OLD.expires_at > 0 AND OLD.expires_at <= now_ms() THEN 7 ELSE 8 END,
      NULL, OLD.user_no, coalesce(unhex(OLD.id, '-'), convert_to(OLD.id, 'UTF8')));
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER events_of_deleted_memories BEFORE DELETE ON memories
  FOR EACH ROW EXECUTE FUNCTION events_of_deleted_memories();

CREATE FUNCTION events_of_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event(NEW.tenant, now_ms(),
    CASE WHEN TG_OP = 'INSERT' THEN 9 WHEN NEW.state = 'deleting' THEN 12
      WHEN NEW.state = 'failed' OR NEW.error_code IS NOT NULL THEN 11 ELSE 10 END,
    NULL, (SELECT user_no FROM users u WHERE u.tenant = NEW.tenant AND u.user_id = NEW.user_id),
    coalesce(unhex(NEW.id, '-'), convert_to(NEW.id, 'UTF8')));
  RETURN NULL;
END $$;
CREATE TRIGGER events_of_stored_documents AFTER INSERT ON documents
  FOR EACH ROW EXECUTE FUNCTION events_of_documents();
CREATE TRIGGER events_of_document_states AFTER UPDATE OF state ON documents
  FOR EACH ROW WHEN (NEW.state <> OLD.state AND NEW.state IN ('ready', 'empty', 'failed', 'deleting'))
  EXECUTE FUNCTION events_of_documents();

CREATE FUNCTION events_of_dead_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_event(NEW.tenant, now_ms(), 13, NULL,
    coalesce((SELECT user_no FROM memories m WHERE m.tenant = NEW.tenant AND m.seq = NEW.memory),
      (SELECT u.user_no FROM documents o JOIN users u ON u.tenant = o.tenant AND u.user_id = o.user_id
       WHERE o.tenant = NEW.tenant AND o.document_no = NEW.document)),
    NEW.uuid);
  RETURN NULL;
END $$;
CREATE TRIGGER events_of_dead_jobs AFTER UPDATE OF state ON jobs
  FOR EACH ROW WHEN (NEW.state = 'dead' AND OLD.state <> 'dead') EXECUTE FUNCTION events_of_dead_jobs();

CREATE FUNCTION vectors_lose_parts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM vector_parts p
    WHERE p.tenant = OLD.tenant AND p.part_no >= 32 * OLD.vector_no AND p.part_no < 32 * (OLD.vector_no + 1);
  RETURN NULL;
END $$;
CREATE TRIGGER vectors_lose_parts AFTER DELETE ON vectors
  FOR EACH ROW WHEN (OLD.precision <> 0) EXECUTE FUNCTION vectors_lose_parts();

-- Changed tags and files. A label that is there already takes no number.
CREATE FUNCTION memories_change_labels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM memory_labels l WHERE l.tenant = NEW.tenant AND l.memory = NEW.seq;
  INSERT INTO labels (tenant, kind, user_no, label)
    SELECT NEW.tenant, g.kind, NEW.user_no, g.value FROM (
      SELECT 0 AS kind, key, value FROM json_texts(NEW.tags) UNION ALL SELECT 1, key, value FROM json_texts(NEW.files)
    ) AS g
    WHERE NOT EXISTS (SELECT 1 FROM labels l
      WHERE l.tenant = NEW.tenant AND l.kind = g.kind AND l.label = g.value AND l.user_no = NEW.user_no)
    ORDER BY g.kind, g.key
    ON CONFLICT DO NOTHING;
  INSERT INTO memory_labels (tenant, label_no, memory)
    SELECT l.tenant, l.label_no, NEW.seq FROM labels l
    WHERE l.tenant = NEW.tenant AND l.user_no = NEW.user_no
      AND ((l.kind = 0 AND l.label IN (SELECT value FROM json_texts(NEW.tags)))
        OR (l.kind = 1 AND l.label IN (SELECT value FROM json_texts(NEW.files))))
    ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER memories_change_labels AFTER UPDATE OF tags, files ON memories
  FOR EACH ROW WHEN (NEW.tags <> OLD.tags OR NEW.files <> OLD.files) EXECUTE FUNCTION memories_change_labels();

CREATE FUNCTION labels_go() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM labels l WHERE l.tenant = OLD.tenant AND l.label_no = OLD.label_no
    AND NOT EXISTS (SELECT 1 FROM memory_labels m WHERE m.tenant = OLD.tenant AND m.label_no = OLD.label_no);
  RETURN NULL;
END $$;
CREATE TRIGGER labels_go AFTER DELETE ON memory_labels FOR EACH ROW EXECUTE FUNCTION labels_go();

CREATE FUNCTION recall_total_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    UPDATE recall_total t SET bytes = t.bytes + NEW.bytes WHERE t.tenant = NEW.tenant;
  ELSE
    UPDATE recall_total t SET bytes = t.bytes - OLD.bytes WHERE t.tenant = OLD.tenant;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER recall_total_follows AFTER INSERT OR DELETE ON recalls
  FOR EACH ROW EXECUTE FUNCTION recall_total_follows();

-- What standing queries have yet to see. A memory that is due again is due at a new number.
CREATE FUNCTION owe_standing(of_tenant integer, of_memory bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM standing_queries q WHERE q.tenant = of_tenant) THEN
    DELETE FROM standing_due s WHERE s.tenant = of_tenant AND s.memory = of_memory;
    INSERT INTO standing_due (tenant, memory) VALUES (of_tenant, of_memory);
  END IF;
END $$;

CREATE FUNCTION standing_of_ready_memories() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF coalesce((SELECT hidden FROM document_generations g
      WHERE g.tenant = NEW.tenant AND g.generation_no = NEW.generation_no), 0) = 0 THEN
    PERFORM owe_standing(NEW.tenant, NEW.seq);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER standing_of_ready_memories AFTER UPDATE OF state ON memory_dynamics
  FOR EACH ROW WHEN (NEW.state <> OLD.state AND NEW.state <> 'queued') EXECUTE FUNCTION standing_of_ready_memories();

CREATE FUNCTION standing_of_shown_generations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM owe_standing(d.tenant, d.seq) FROM memory_dynamics d
    WHERE d.tenant = NEW.tenant AND d.generation_no = NEW.generation_no AND d.state <> 'queued';
  RETURN NULL;
END $$;
CREATE TRIGGER standing_of_shown_generations AFTER UPDATE OF hidden ON document_generations
  FOR EACH ROW WHEN (NEW.hidden = 0 AND OLD.hidden = 1) EXECUTE FUNCTION standing_of_shown_generations();

CREATE FUNCTION standing_of_successors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM owe_standing(NEW.tenant, NEW.src);
  RETURN NULL;
END $$;
CREATE TRIGGER standing_of_successors AFTER INSERT ON edges
  FOR EACH ROW WHEN (NEW.type = 'supersedes') EXECUTE FUNCTION standing_of_successors();

-- The first rows of a new tenant's tables, which a tenant's file is made with.
CREATE FUNCTION begin_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('cairn.tenant', NEW.tenant::text, true);
  INSERT INTO users (tenant, user_no, user_id) VALUES (NEW.tenant, 0, '');
  INSERT INTO text_rewrites (tenant, memory) VALUES (NEW.tenant, NULL);
  INSERT INTO vector_removals (tenant, vector_no) VALUES (NEW.tenant, NULL);
  INSERT INTO event_feed (tenant, row_no, feed_id, is_on) VALUES (NEW.tenant, 1, substr(md5(random()::text), 1, 8), 0);
  INSERT INTO recall_total (tenant, row_no, bytes) VALUES (NEW.tenant, 1, 0);
  INSERT INTO webhook_cursor (tenant, row_no, feed_id, event_no) VALUES (NEW.tenant, 1, '', 0);
  INSERT INTO store_info (tenant, key, value) VALUES (NEW.tenant, 'idempotency_secret',
    encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex'));
  RETURN NULL;
END $$;
CREATE TRIGGER begin_tenant AFTER INSERT ON tenants FOR EACH ROW EXECUTE FUNCTION begin_tenant();

-- The second wall: rows of another tenant than the session's can be neither seen nor written, whatever a statement says.
DO $$
DECLARE name text;
BEGIN
  FOR name IN
    SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname <> 'tenants'
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY of_tenant ON %I USING (tenant = present_tenant())', name);
  END LOOP;
END $$;
