-- Orders in which lists are read page by page, and the labels of memories: tags and files.

-- A user's memories in the order of adding, and all memories in time.
CREATE INDEX memories_by_user ON memories (user_no);
CREATE INDEX memories_by_event_time ON memories (event_time);
CREATE INDEX memories_by_type ON memories (type, user_no) WHERE type <> '';

-- Namespaces label by label: no label holds a control character, so char(1) ends a label before any other.
CREATE UNIQUE INDEX namespaces_by_labels ON namespaces (user_no, replace(path, '.', char(1)));
CREATE INDEX namespaces_by_labels_of_all ON namespaces (replace(path, '.', char(1)), user_no);
DROP INDEX namespaces_by_path;

-- Distinct tags and files of each user. A row exists as long as a memory has the label, as it may be personal data.
CREATE TABLE labels (
  label_no INTEGER PRIMARY KEY AUTOINCREMENT,
  kind     INTEGER NOT NULL,                          -- 0 tag, 1 file
  user_no  INTEGER NOT NULL,
  label    TEXT NOT NULL,
  UNIQUE (kind, label, user_no)
) STRICT;
CREATE INDEX labels_by_user ON labels (kind, user_no, label);

CREATE TABLE memory_labels (
  label_no INTEGER NOT NULL,
  memory   INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  PRIMARY KEY (label_no, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_labels_by_memory ON memory_labels (memory);

INSERT OR IGNORE INTO labels (kind, user_no, label)
  SELECT 0, m.user_no, j.value FROM memories m, json_each(m.tags) j
  WHERE m.tags <> '[]' AND json_valid(m.tags) AND j.type = 'text';
INSERT OR IGNORE INTO labels (kind, user_no, label)
  SELECT 1, m.user_no, j.value FROM memories m, json_each(m.files) j
  WHERE m.files <> '[]' AND json_valid(m.files) AND j.type = 'text';
INSERT OR IGNORE INTO memory_labels (label_no, memory)
  SELECT l.label_no, m.seq FROM memories m, json_each(m.tags) j
  JOIN labels l ON l.kind = 0 AND l.label = j.value AND l.user_no = m.user_no
  WHERE m.tags <> '[]' AND json_valid(m.tags);
INSERT OR IGNORE INTO memory_labels (label_no, memory)
  SELECT l.label_no, m.seq FROM memories m, json_each(m.files) j
  JOIN labels l ON l.kind = 1 AND l.label = j.value AND l.user_no = m.user_no
  WHERE m.files <> '[]' AND json_valid(m.files);

-- `tags` and `files` of a memory are the truth; these keep the labels true to them, whatever writes a memory.
CREATE TRIGGER memories_bring_labels AFTER INSERT ON memories WHEN NEW.tags <> '[]' OR NEW.files <> '[]' BEGIN
  INSERT OR IGNORE INTO labels (kind, user_no, label)
    SELECT 0, NEW.user_no, value FROM json_each(NEW.tags) UNION ALL SELECT 1, NEW.user_no, value FROM json_each(NEW.files);
  INSERT OR IGNORE INTO memory_labels (label_no, memory)
    SELECT l.label_no, NEW.seq FROM json_each(NEW.tags) j
    JOIN labels l ON l.kind = 0 AND l.label = j.value AND l.user_no = NEW.user_no;
  INSERT OR IGNORE INTO memory_labels (label_no, memory)
    SELECT l.label_no, NEW.seq FROM json_each(NEW.files) j
    JOIN labels l ON l.kind = 1 AND l.label = j.value AND l.user_no = NEW.user_no;
END;
CREATE TRIGGER memories_change_labels AFTER UPDATE OF tags, files ON memories
WHEN NEW.tags <> OLD.tags OR NEW.files <> OLD.files BEGIN
  DELETE FROM memory_labels WHERE memory = NEW.seq;
  INSERT OR IGNORE INTO labels (kind, user_no, label)
    SELECT 0, NEW.user_no, value FROM json_each(NEW.tags) UNION ALL SELECT 1, NEW.user_no, value FROM json_each(NEW.files);
  INSERT OR IGNORE INTO memory_labels (label_no, memory)
    SELECT l.label_no, NEW.seq FROM json_each(NEW.tags) j
    JOIN labels l ON l.kind = 0 AND l.label = j.value AND l.user_no = NEW.user_no;
  INSERT OR IGNORE INTO memory_labels (label_no, memory)
    SELECT l.label_no, NEW.seq FROM json_each(NEW.files) j
    JOIN labels l ON l.kind = 1 AND l.label = j.value AND l.user_no = NEW.user_no;
END;
CREATE TRIGGER labels_go AFTER DELETE ON memory_labels BEGIN
  DELETE FROM labels WHERE label_no = OLD.label_no
    AND NOT EXISTS (SELECT 1 FROM memory_labels WHERE label_no = OLD.label_no);
END;
