-- Tenants, and functions that SQLite has and PostgreSQL has not: with them one text of a statement serves both.

CREATE TABLE schema_version (
  version integer NOT NULL
);
INSERT INTO schema_version (version) VALUES (0);

-- Each writing transaction begins with an update of its tenant's row, which is the tenant's write lock.
CREATE TABLE tenants (
  tenant integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id     text COLLATE "C" NOT NULL UNIQUE,
  writes bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The tenant of the session, for defaults and row-level security; NULL, which no row has, where none is set.
CREATE FUNCTION present_tenant() RETURNS integer LANGUAGE sql STABLE
  AS $$ SELECT nullif(current_setting('cairn.tenant', true), '')::integer $$;

-- The next number of a table whose numbers are never given twice, as with AUTOINCREMENT.
CREATE FUNCTION next_number(of_table text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE given bigint;
BEGIN
  INSERT INTO numbers AS n (tenant, name, last) VALUES (present_tenant(), of_table, 1)
    ON CONFLICT (tenant, name) DO UPDATE SET last = n.last + 1 RETURNING n.last INTO given;
  RETURN given;
END $$;

-- The number after the highest of a table, as a rowid without AUTOINCREMENT.
CREATE FUNCTION next_row(of_table text, of_column text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE given bigint;
BEGIN
  EXECUTE format('SELECT coalesce(max(%I), 0) + 1 FROM %I WHERE tenant = present_tenant()', of_column, of_table)
    INTO given;
  RETURN given;
END $$;

-- Lists: a JSON array as rows of `key`, from 0, and `value`.
CREATE FUNCTION json_integers(list text) RETURNS TABLE (key bigint, value bigint) LANGUAGE sql IMMUTABLE ROWS 20
  AS $$ SELECT o - 1, v FROM unnest(translate(list, '[]', '{}')::bigint[]) WITH ORDINALITY AS u (v, o) $$;
CREATE FUNCTION json_fractions(list text) RETURNS TABLE (key bigint, value float8) LANGUAGE sql IMMUTABLE ROWS 20
  AS $$ SELECT o - 1, v FROM unnest(translate(list, '[]', '{}')::float8[]) WITH ORDINALITY AS u (v, o) $$;
CREATE FUNCTION json_texts(list text) RETURNS TABLE (key bigint, value text) LANGUAGE sql IMMUTABLE ROWS 20
  AS $$ SELECT o - 1, v COLLATE "C" FROM json_array_elements_text(
      CASE WHEN list ~ '^\s*\[' THEN list::json ELSE json_build_array(list::json) END) WITH ORDINALITY AS u (v, o) $$;
CREATE FUNCTION json_values(list text) RETURNS TABLE (key bigint, value text) LANGUAGE sql IMMUTABLE ROWS 20
  AS $$ SELECT o - 1, v::text FROM json_array_elements(list::json) WITH ORDINALITY AS u (v, o) $$;

-- JSON: an element or a field as text, by its place, its name or its path `$.name`.
CREATE FUNCTION json_extract(document text, path text) RETURNS text LANGUAGE sql IMMUTABLE
  AS $$ SELECT document::json ->> CASE WHEN starts_with(path, '$.') THEN substr(path, 3) ELSE path END $$;
CREATE FUNCTION json_element(document text, place integer) RETURNS text LANGUAGE sql IMMUTABLE
  AS $$ SELECT document::json ->> place $$;
CREATE OPERATOR ->> (LEFTARG = text, RIGHTARG = text, FUNCTION = json_extract);
CREATE OPERATOR ->> (LEFTARG = text, RIGHTARG = integer, FUNCTION = json_element);
-- A document of one level with the fields of another: those that change keep their place, new ones come last.
CREATE FUNCTION json_patch(document text, changes text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT '{' || coalesce(string_agg(to_json(f.key)::text || ':' || f.value, ',' ORDER BY f.side, f.place), '') || '}'
  FROM (
    SELECT 0 AS side, d.place, d.key, coalesce(changes::json -> d.key, d.value)::text AS value
      FROM json_each(document::json) WITH ORDINALITY AS d (key, value, place)
    UNION ALL
    SELECT 1, c.place, c.key, c.value::text FROM json_each(changes::json) WITH ORDINALITY AS c (key, value, place)
      WHERE document::json -> c.key IS NULL
  ) AS f WHERE f.value <> 'null'
$$;
CREATE FUNCTION json_set(document text, path text, value bigint) RETURNS text LANGUAGE sql IMMUTABLE
  AS $$ SELECT json_patch(document, json_build_object(substr(path, 3), value)::text) $$;
CREATE FUNCTION array_to_text(list anycompatiblearray) RETURNS text LANGUAGE sql IMMUTABLE
  AS $$ SELECT array_to_json(list)::text $$;
CREATE AGGREGATE json_group_array(anycompatible)
  (SFUNC = array_append, STYPE = anycompatiblearray, INITCOND = '{}', FINALFUNC = array_to_text);

-- Texts and bytes.
CREATE FUNCTION instr(whole text, part text) RETURNS integer LANGUAGE sql IMMUTABLE
  AS $$ SELECT strpos(whole, part) $$;
CREATE FUNCTION substr(whole text, first bigint, length bigint) RETURNS text LANGUAGE sql IMMUTABLE
  AS $$ SELECT pg_catalog.substr(whole, first::integer, least(length, 2147483647 - first)::integer) $$;
CREATE FUNCTION substr(whole bytea, first bigint, length bigint) RETURNS bytea LANGUAGE sql IMMUTABLE
  AS $$ SELECT pg_catalog.substr(whole, first::integer, least(length, 2147483647 - first)::integer) $$;
CREATE FUNCTION hex(bytes bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT upper(encode(bytes, 'hex')) $$;
CREATE FUNCTION unhex(digits text, separators text DEFAULT '') RETURNS bytea LANGUAGE sql IMMUTABLE
  AS $$ SELECT CASE WHEN translate(digits, separators, '') ~ '^([0-9a-fA-F]{2})*$'
    THEN decode(translate(digits, separators, ''), 'hex') END $$;

-- Time in seconds since 1970, with its fraction.
CREATE FUNCTION unixepoch(precision_asked text) RETURNS float8 LANGUAGE sql VOLATILE
  AS $$ SELECT extract(epoch FROM clock_timestamp())::float8 $$;

-- Numbers. Unlike `least` and `greatest`, SQLite's min and max of several values are NULL if one of these is.
CREATE FUNCTION min(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN a <= b THEN a ELSE CASE WHEN a IS NOT NULL THEN b END END $$;
CREATE FUNCTION max(a bigint, b bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN a >= b THEN a ELSE CASE WHEN a IS NOT NULL THEN b END END $$;
CREATE FUNCTION min(a float8, b float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN a <= b THEN a ELSE CASE WHEN a IS NOT NULL THEN b END END $$;
CREATE FUNCTION max(a float8, b float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN a >= b THEN a ELSE CASE WHEN a IS NOT NULL THEN b END END $$;
CREATE FUNCTION min(a text, b text) RETURNS text LANGUAGE sql IMMUTABLE
  AS $$ SELECT CASE WHEN a COLLATE "C" <= b THEN a ELSE CASE WHEN a IS NOT NULL THEN b END END $$;
CREATE FUNCTION max(a text, b text) RETURNS text LANGUAGE sql IMMUTABLE
  AS $$ SELECT CASE WHEN a COLLATE "C" >= b THEN a ELSE CASE WHEN a IS NOT NULL THEN b END END $$;
CREATE FUNCTION to_integer(value float8) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT trunc(value)::bigint $$;
CREATE FUNCTION to_integer(value bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT value $$;
CREATE FUNCTION to_integer(value text) RETURNS bigint LANGUAGE sql IMMUTABLE
  AS $$ SELECT coalesce(substring(value FROM '^\s*[+-]?\d+')::bigint, 0) $$;
CREATE FUNCTION add_condition(sum bigint, holds boolean) RETURNS bigint LANGUAGE sql IMMUTABLE
  AS $$ SELECT CASE WHEN holds IS NULL THEN sum ELSE coalesce(sum, 0) + holds::integer END $$;
CREATE AGGREGATE sum(boolean) (SFUNC = add_condition, STYPE = bigint);

-- Conditions on tags, metadata and namespaces, as `label-conditions.ts` describes them.
CREATE FUNCTION tags_pass(tags text, wanted text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT NOT EXISTS (SELECT 1 FROM json_texts(wanted) AS w
    WHERE NOT EXISTS (SELECT 1 FROM json_texts(coalesce(tags, '[]')) AS t WHERE t.value = w.value))
$$;

CREATE FUNCTION key_passes(value json, operator text, operand json) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  kind text := json_typeof(value);
  own text := value #>> '{}';
  other text := operand #>> '{}';
  difference integer;
BEGIN
  CASE operator
    WHEN '$exists' THEN RETURN (value IS NOT NULL) = (operand::text = 'true');
    WHEN '$eq' THEN RETURN coalesce(value::text, 'null') = operand::text;
    WHEN '$ne' THEN RETURN coalesce(value::text, 'null') <> operand::text;
    WHEN '$in' THEN RETURN coalesce(value::text, 'null') IN (SELECT v::text FROM json_array_elements(operand) AS v);
    WHEN '$nin' THEN RETURN coalesce(value::text, 'null') NOT IN (SELECT v::text FROM json_array_elements(operand) AS v);
    ELSE
      IF kind IS NULL OR kind <> json_typeof(operand) OR kind NOT IN ('number', 'string') THEN RETURN false; END IF;
      IF kind = 'number' THEN difference := sign(own::float8 - other::float8);
      ELSE difference := CASE WHEN own COLLATE "C" < other THEN -1 WHEN own = other THEN 0 ELSE 1 END;
      END IF;
      RETURN CASE operator WHEN '$gt' THEN difference > 0 WHEN '$gte' THEN difference >= 0
        WHEN '$lt' THEN difference < 0 ELSE difference <= 0 END;
  END CASE;
END $$;

CREATE FUNCTION metadata_passes(metadata text, wanted text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT NOT EXISTS (SELECT 1 FROM json_array_elements(wanted::json) AS c
    WHERE NOT key_passes(coalesce(metadata, '{}')::json -> (c ->> 0), c ->> 1, c -> 2))
$$;

-- Only an object has keys.
CREATE FUNCTION value_passes(value text, wanted text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT metadata_passes(CASE WHEN starts_with(value, '{') THEN value ELSE '{}' END, wanted)
$$;

CREATE FUNCTION labels_match(labels text[], skipped integer, pattern text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT skipped >= 0 AND skipped + cardinality(p.labels) <= cardinality($1)
      AND NOT EXISTS (SELECT 1 FROM unnest(p.labels) WITH ORDINALITY AS w (label, place)
        WHERE w.label <> '*' AND w.label <> $1[skipped + w.place::integer])
    FROM (SELECT CASE WHEN pattern = '' THEN '{}'::text[] ELSE string_to_array(pattern, '.') END AS labels) AS p
$$;

CREATE FUNCTION namespace_matches(path text, wanted text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT labels_match(own.labels, 0, wanted::json ->> 0)
      AND labels_match(own.labels, cardinality(own.labels) - ends.count, wanted::json ->> 1)
    FROM (SELECT CASE WHEN path = '' THEN '{}'::text[] ELSE string_to_array(path, '.') END AS labels) AS own,
      (SELECT CASE WHEN wanted::json ->> 1 = '' THEN 0 ELSE cardinality(string_to_array(wanted::json ->> 1, '.')) END
        AS count) AS ends
$$;
