-- Sort key of a namespace's path, which sorts label by label: no label holds a control character, so chr(1) ends a label
-- before any other. It is a column, since under row-level security the server compares a function of a row with a
-- parameter only after it has read the row: each page of a list read all namespaces.
ALTER TABLE namespaces ADD COLUMN path_order text COLLATE "C"
  GENERATED ALWAYS AS (replace(path, '.', chr(1)) COLLATE "C") STORED;
DROP INDEX namespaces_by_labels;
DROP INDEX namespaces_by_labels_of_all;
CREATE UNIQUE INDEX namespaces_by_labels ON namespaces (tenant, user_no, path_order);
CREATE INDEX namespaces_by_labels_of_all ON namespaces (tenant, path_order, user_no);
