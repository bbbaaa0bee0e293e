-- A query has a deadline. `cairn.work_until` is the time at which its work ends, in seconds since 1970. After it, the
-- functions that parse JSON return false for every row, as those of a file do.
CREATE FUNCTION has_work_ended() RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(nullif(current_setting('cairn.work_until', true), '')::float8
    < extract(epoch FROM clock_timestamp())::float8, false)
$$;

-- Each list is taken apart once for a row.
CREATE OR REPLACE FUNCTION tags_pass(tags text, wanted text) RETURNS boolean LANGUAGE plpgsql STABLE COST 1000 AS $$
BEGIN
  IF has_work_ended() THEN RETURN false; END IF;
  RETURN ARRAY(SELECT value FROM json_texts(coalesce(tags, '[]'))) @> ARRAY(SELECT value FROM json_texts(wanted));
END $$;

-- The metadata is taken apart once for all conditions.
CREATE OR REPLACE FUNCTION metadata_passes(metadata text, wanted text) RETURNS boolean
  LANGUAGE plpgsql STABLE COST 1000 AS $$
BEGIN
  IF has_work_ended() THEN RETURN false; END IF;
  RETURN NOT EXISTS (
    SELECT 1 FROM json_array_elements(readable_json(wanted)::json) AS c (condition)
      LEFT JOIN json_each(readable_json(coalesce(metadata, '{}'))::json) AS own ON own.key = c.condition ->> 0
    WHERE NOT key_passes(own.value, c.condition ->> 1, c.condition -> 2));
END $$;

CREATE OR REPLACE FUNCTION value_passes(value text, wanted text) RETURNS boolean LANGUAGE sql STABLE COST 1000 AS $$
  SELECT metadata_passes(CASE WHEN starts_with(value, '{') THEN value ELSE '{}' END, wanted)
$$;
