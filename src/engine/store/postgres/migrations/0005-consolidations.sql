-- As migration 0017 of a tenant's file.

CREATE TABLE consolidations (
  tenant           integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  consolidation_no bigint NOT NULL DEFAULT next_number('consolidations'),
  id               text COLLATE "C" NOT NULL,
  run_id           text COLLATE "C" NOT NULL,
  user_no          bigint NOT NULL,
  memory           bigint,
  method           text COLLATE "C" NOT NULL,
  created_at       bigint NOT NULL,
  PRIMARY KEY (tenant, consolidation_no),
  UNIQUE (tenant, id),
  UNIQUE (tenant, memory),
  FOREIGN KEY (tenant, user_no) REFERENCES users (tenant, user_no) ON DELETE CASCADE,
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, seq) ON DELETE SET NULL (memory)
);
CREATE INDEX consolidations_by_user ON consolidations (tenant, user_no);
CREATE INDEX consolidations_by_run ON consolidations (tenant, run_id);

CREATE TABLE consolidation_sources (
  tenant           integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  source           bigint NOT NULL,
  consolidation_no bigint NOT NULL,
  PRIMARY KEY (tenant, source),
  FOREIGN KEY (tenant, source) REFERENCES memories (tenant, seq) ON DELETE CASCADE,
  FOREIGN KEY (tenant, consolidation_no) REFERENCES consolidations (tenant, consolidation_no) ON DELETE CASCADE
);
CREATE INDEX consolidation_sources_by_no ON consolidation_sources (tenant, consolidation_no);

CREATE TABLE consolidation_runs (
  tenant    integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  job       bigint NOT NULL,
  user_no   bigint,
  again     bigint NOT NULL,
  at_user   bigint NOT NULL,
  at_time   bigint NOT NULL,
  at_memory bigint NOT NULL,
  bytes     bigint NOT NULL DEFAULT 0,
  made      bigint NOT NULL DEFAULT 0,
  ended     text COLLATE "C",
  up_to     bigint NOT NULL,
  PRIMARY KEY (tenant, job),
  FOREIGN KEY (tenant, job) REFERENCES jobs (tenant, seq) ON DELETE CASCADE,
  FOREIGN KEY (tenant, user_no) REFERENCES users (tenant, user_no) ON DELETE CASCADE
);
CREATE INDEX consolidation_runs_of_user ON consolidation_runs (tenant, user_no);

CREATE INDEX jobs_of_consolidations ON jobs (tenant, state) WHERE kind = 'consolidation';

CREATE FUNCTION consolidations_of_erased_sources() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM consolidations c WHERE c.tenant = OLD.tenant AND c.consolidation_no IN
    (SELECT s.consolidation_no FROM consolidation_sources s WHERE s.tenant = OLD.tenant AND s.source = OLD.seq);
  RETURN OLD;
END $$;
CREATE TRIGGER consolidations_of_erased_sources BEFORE DELETE ON memories
  FOR EACH ROW EXECUTE FUNCTION consolidations_of_erased_sources();

CREATE FUNCTION standing_without_consolidations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM consolidations c WHERE c.tenant = NEW.tenant AND c.memory = NEW.memory) THEN
    DELETE FROM standing_due s WHERE s.tenant = NEW.tenant AND s.memory = NEW.memory;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER standing_without_consolidations AFTER INSERT ON standing_due
  FOR EACH ROW EXECUTE FUNCTION standing_without_consolidations();

ALTER TABLE consolidations ENABLE ROW LEVEL SECURITY;
ALTER TABLE consolidations FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON consolidations USING (tenant = present_tenant());
ALTER TABLE consolidation_sources ENABLE ROW LEVEL SECURITY;
ALTER TABLE consolidation_sources FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON consolidation_sources USING (tenant = present_tenant());
ALTER TABLE consolidation_runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE consolidation_runs FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON consolidation_runs USING (tenant = present_tenant());
