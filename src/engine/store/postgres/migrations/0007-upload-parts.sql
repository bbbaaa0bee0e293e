-- The files of documents that wait to be read, in parts, which stand beside a tenant's file elsewhere. The commit that
-- says that a file is no longer needed deletes its parts.

CREATE TABLE upload_parts (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  upload     text COLLATE "C" NOT NULL,
  part       bigint NOT NULL,
  created_at bigint NOT NULL,
  data       bytea NOT NULL,
  PRIMARY KEY (tenant, upload, part)
);
-- Most formats are compressed already.
ALTER TABLE upload_parts ALTER data SET STORAGE EXTERNAL;

ALTER TABLE upload_parts ENABLE ROW LEVEL SECURITY;
ALTER TABLE upload_parts FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON upload_parts USING (tenant = present_tenant());

CREATE FUNCTION uploads_go() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM upload_parts p WHERE p.tenant = OLD.tenant AND p.upload = OLD.upload;
  RETURN NULL;
END $$;
CREATE TRIGGER uploads_go AFTER UPDATE OF upload ON document_generations
  FOR EACH ROW WHEN (OLD.upload <> '' AND NEW.upload <> OLD.upload) EXECUTE FUNCTION uploads_go();
CREATE TRIGGER uploads_go_with_generations AFTER DELETE ON document_generations
  FOR EACH ROW WHEN (OLD.upload <> '') EXECUTE FUNCTION uploads_go();
