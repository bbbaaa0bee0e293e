-- Migration 0025 marked the readings of no tenant if the role was bound by row-level security.
DO $$
DECLARE one integer;
BEGIN
  FOR one IN SELECT tenant FROM tenants LOOP
    PERFORM set_config('cairn.tenant', one::text, true);
    UPDATE document_generations AS g SET nameless_of = o.user_id FROM documents AS o
      WHERE g.tenant = one AND o.tenant = one AND o.document_no = g.document_no AND o.external_id = ''
        AND g.nameless_of IS NULL;
  END LOOP;
  PERFORM set_config('cairn.tenant', '', true);
END $$;
