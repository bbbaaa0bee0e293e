-- Two thirds of all places in the index are those of the context, and FTS5 spends two bytes on each row's change to a column that is not the
-- first: 60 to 90 bytes a memory. All words are written anew, and what was there is overwritten with zeros.
DROP TABLE memory_text;
CREATE VIRTUAL TABLE memory_text USING fts5 (
  context,                                            -- the two preceding memories of the session, <= 1,000 characters
  title, content, gist, entities, tags,
  identifiers,                                        -- whole and split identifiers, marked so that nothing stems them
  content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

INSERT INTO memory_text (rowid, context, title, content, gist, entities, tags, identifiers)
SELECT m.seq,
  iif(m.session_id = '' OR d.generation_no IS NOT NULL, '', indexable_text(context_of((
    SELECT json_group_array(content) FROM (
      SELECT b.content FROM memories b INDEXED BY memories_by_session CROSS JOIN memory_dynamics bd ON bd.seq = b.seq
      WHERE b.user_no = m.user_no AND b.session_id = m.session_id AND (b.event_time, b.seq) < (m.event_time, m.seq)
        AND bd.generation_no IS NULL
      ORDER BY b.event_time DESC, b.seq DESC LIMIT 2))))),
  indexable_text(m.title), indexable_text(m.content), indexable_text(m.gist),
  indexable_text(coalesce((SELECT group_concat(value, char(10)) FROM json_each(m.entities)), '')),
  indexable_text(coalesce((SELECT group_concat(value, char(10)) FROM json_each(m.tags)), '')),
  identifiers_of(iif(m.title = '', '', m.title || char(10)) || m.content)
FROM memories m CROSS JOIN memory_dynamics d ON d.seq = m.seq ORDER BY m.seq;

INSERT INTO text_rewrites (memory) VALUES (NULL);
