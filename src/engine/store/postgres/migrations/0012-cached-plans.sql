-- Functions that run for each row of the tables that grow most, as PL/pgSQL with fixed statements: a session plans these
-- once, whereas EXECUTE and functions in SQL plan at each call.

CREATE OR REPLACE FUNCTION next_row(of_table text, of_column text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE given bigint;
BEGIN
  CASE of_table
    WHEN 'events' THEN
      SELECT coalesce(max(event_no), 0) + 1 INTO given FROM events WHERE tenant = present_tenant();
    WHEN 'entities' THEN
      SELECT coalesce(max(entity_no), 0) + 1 INTO given FROM entities WHERE tenant = present_tenant();
    WHEN 'recalls' THEN
      SELECT coalesce(max(recall_no), 0) + 1 INTO given FROM recalls WHERE tenant = present_tenant();
    ELSE
      EXECUTE format('SELECT coalesce(max(%I), 0) + 1 FROM %I WHERE tenant = present_tenant()', of_column, of_table)
        INTO given;
  END CASE;
  RETURN given;
END $$;

CREATE OR REPLACE FUNCTION note_event(
  of_tenant integer, at bigint, kind integer, memory bigint, user_no bigint, subject bytea
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  INSERT INTO events (tenant, at, kind, memory, user_no, subject)
    SELECT of_tenant, $2, $3, $4, $5, $6 FROM event_feed f WHERE f.tenant = of_tenant AND f.is_on = 1;
END $$;
