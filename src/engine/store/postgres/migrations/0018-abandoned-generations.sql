-- As migration 0021 of a tenant's file.
DO $$
DECLARE one integer;
BEGIN
  FOR one IN SELECT tenant FROM tenants LOOP
    PERFORM set_config('cairn.tenant', one::text, true);
    UPDATE document_generations AS g SET hidden = 2
      WHERE g.tenant = one AND g.hidden > 0 AND NOT EXISTS (SELECT 1 FROM documents AS o
        WHERE o.tenant = one AND o.document_no = g.document_no AND g.generation_no IN (o.live_no, o.next_no));
  END LOOP;
  PERFORM set_config('cairn.tenant', '', true);
END $$;
CREATE INDEX document_generations_abandoned ON document_generations (tenant, generation_no) WHERE hidden > 1;
DROP INDEX document_generations_hidden;
