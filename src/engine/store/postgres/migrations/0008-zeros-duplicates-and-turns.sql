-- JSON with U+0000, which PostgreSQL does not take apart: the escape becomes the form that texts in columns have
-- (`escaped-text.ts`), U+10FFFE and a 0. An even number of backslashes may stand before it.
CREATE FUNCTION readable_json(document text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN strpos(document, '\u0000') = 0 THEN document
    ELSE regexp_replace(document, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\udbff\\udffe0', 'g') END
$$;

CREATE OR REPLACE FUNCTION json_texts(list text) RETURNS TABLE (key bigint, value text) LANGUAGE sql IMMUTABLE ROWS 20
  AS $$ SELECT o - 1, v COLLATE "C" FROM json_array_elements_text(
      CASE WHEN list ~ '^\s*\[' THEN readable_json(list)::json ELSE json_build_array(readable_json(list)::json) END)
    WITH ORDINALITY AS u (v, o) $$;

CREATE OR REPLACE FUNCTION json_extract(document text, path text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT readable_json(document)::json ->> CASE WHEN starts_with(path, '$.') THEN substr(path, 3) ELSE path END
$$;
CREATE OR REPLACE FUNCTION json_element(document text, place integer) RETURNS text LANGUAGE sql IMMUTABLE
  AS $$ SELECT readable_json(document)::json ->> place $$;

CREATE OR REPLACE FUNCTION metadata_passes(metadata text, wanted text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT NOT EXISTS (SELECT 1 FROM json_array_elements(readable_json(wanted)::json) AS c
    WHERE NOT key_passes(readable_json(coalesce(metadata, '{}'))::json -> (c ->> 0), c ->> 1, c -> 2))
$$;

-- The newest memories with the hash of a text are found without a look at the older ones.
DROP INDEX memories_by_hash;
CREATE INDEX memories_by_hash ON memories (tenant, user_no, session_id, content_hash, seq);

-- Parts of documents, as the file's migration 0019 describes them.
ALTER TABLE memories ADD COLUMN is_part bigint NOT NULL DEFAULT 0;
CREATE INDEX memories_by_turn ON memories (tenant, user_no, session_id, event_time)
  WHERE is_part = 0 AND session_id <> '';
