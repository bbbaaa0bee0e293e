-- A query may examine so many bytes: `cairn.work_left` is the number that is left. Each row of a condition that parses
-- JSON counts for 32 bytes and for the length of its text, as in a file. When none is left, or the time is over, the
-- functions that parse JSON return false for every row.
CREATE FUNCTION may_work(bytes integer) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  bytes_left bigint := nullif(current_setting('cairn.work_left', true), '')::bigint;
BEGIN
  IF has_work_ended() OR bytes_left < 0 THEN RETURN false; END IF;
  IF bytes_left IS NULL THEN RETURN true; END IF;
  bytes_left := bytes_left - bytes;
  PERFORM set_config('cairn.work_left', bytes_left::text, true);
  RETURN bytes_left >= 0;
END $$;

CREATE OR REPLACE FUNCTION tags_pass(tags text, wanted text) RETURNS boolean LANGUAGE plpgsql STABLE COST 1000 AS $$
BEGIN
  IF NOT may_work(32 + length(coalesce(tags, '[]'))) THEN RETURN false; END IF;
  RETURN ARRAY(SELECT value FROM json_texts(coalesce(tags, '[]'))) @> ARRAY(SELECT value FROM json_texts(wanted));
END $$;

CREATE OR REPLACE FUNCTION metadata_passes(metadata text, wanted text) RETURNS boolean
  LANGUAGE plpgsql STABLE COST 1000 AS $$
BEGIN
  IF NOT may_work(32 + length(coalesce(metadata, '{}'))) THEN RETURN false; END IF;
  RETURN NOT EXISTS (
    SELECT 1 FROM json_array_elements(readable_json(wanted)::json) AS c (condition)
      LEFT JOIN json_each(readable_json(coalesce(metadata, '{}'))::json) AS own ON own.key = c.condition ->> 0
    WHERE NOT key_passes(own.value, c.condition ->> 1, c.condition -> 2));
END $$;
