-- A step of merging ends only between two tokens, so that the most common word of a million memories was copied in one, for .1 s. From here on each
-- 131,072 rows have tokens of their own (store/word-index/tokens.ts). All words are written anew, and what was there is overwritten with zeros.
DROP TABLE memory_text;
CREATE VIRTUAL TABLE memory_text USING fts5 (
  context,                                            -- the two preceding memories of the session, <= 1,000 characters
  title, content, gist, entities, tags,
  identifiers,                                        -- whole and split identifiers, marked so that nothing stems them
  content = '', contentless_delete = 1, tokenize = "porter unicode61 remove_diacritics 2 tokenchars '!'"
);

INSERT INTO memory_text (rowid, context, title, content, gist, entities, tags, identifiers)
SELECT m.seq,
  iif(m.session_id = '' OR d.generation_no IS NOT NULL, '', indexed_text(context_of((
    SELECT json_group_array(content) FROM (
      SELECT b.content FROM memories b INDEXED BY memories_by_session CROSS JOIN memory_dynamics bd ON bd.seq = b.seq
      WHERE b.user_no = m.user_no AND b.session_id = m.session_id AND (b.event_time, b.seq) < (m.event_time, m.seq)
        AND bd.generation_no IS NULL
      ORDER BY b.event_time DESC, b.seq DESC LIMIT 2))), m.seq)),
  indexed_text(m.title, m.seq), indexed_text(m.content, m.seq), indexed_text(m.gist, m.seq),
  indexed_text(coalesce((SELECT group_concat(value, char(10)) FROM json_each(m.entities)), ''), m.seq),
  indexed_text(coalesce((SELECT group_concat(value, char(10)) FROM json_each(m.tags)), ''), m.seq),
  indexed_text(identifiers_of(iif(m.title = '', '', m.title || char(10)) || m.content), m.seq)
FROM memories m CROSS JOIN memory_dynamics d ON d.seq = m.seq ORDER BY m.seq;

INSERT INTO memory_text (memory_text, rank) VALUES ('automerge', 0);
INSERT INTO text_rewrites (memory) VALUES (NULL);
