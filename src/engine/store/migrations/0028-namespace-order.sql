-- Sort key of a namespace's path, which sorts label by label: no label holds a control character, so char(1) ends a
-- label before any other. It is a column so that a row's place in the order is compared as it is stored.
ALTER TABLE namespaces ADD COLUMN path_order TEXT AS (replace(path, '.', char(1))) VIRTUAL;
DROP INDEX namespaces_by_labels;
DROP INDEX namespaces_by_labels_of_all;
CREATE UNIQUE INDEX namespaces_by_labels ON namespaces (user_no, path_order);
CREATE INDEX namespaces_by_labels_of_all ON namespaces (path_order, user_no);
