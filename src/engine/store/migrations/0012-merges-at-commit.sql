-- The word index is merged by who writes to it, in even steps (store/text.ts). FTS5's own steps made every fifth commit three times as long.
INSERT INTO memory_text (memory_text, rank) VALUES ('automerge', 0);
