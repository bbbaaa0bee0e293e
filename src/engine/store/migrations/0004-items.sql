-- Items: memories that a caller names by a key of its own, within a user and a namespace, and puts and deletes by that
-- name. An item may have a value, any JSON, apart from the text that is searched.

-- NULL for none. It stands behind the text, as it is read only where the text is.
ALTER TABLE memories ADD COLUMN value TEXT;

-- Namespaces inside a user. A row exists as long as an item is in it, as a path may be personal data.
CREATE TABLE namespaces (
  namespace_no INTEGER PRIMARY KEY AUTOINCREMENT,
  user_no      INTEGER NOT NULL,
  path         TEXT NOT NULL,                         -- labels joined by dots: settings.editor
  UNIQUE (user_no, path)
) STRICT;
-- What lies below a path is one stretch of this index: from `path.` on, up to `path/`.
CREATE INDEX namespaces_by_path ON namespaces (path, user_no);

CREATE TABLE items (
  memory       INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  namespace_no INTEGER NOT NULL,                      -- 0 for none: the key is the memory's external_id then
  item_key     TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX items_by_key ON items (namespace_no, item_key) WHERE namespace_no > 0;
