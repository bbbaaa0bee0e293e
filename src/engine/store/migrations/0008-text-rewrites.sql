-- The last rows of memory_text that were written again or deleted, so that each process reads their lengths anew (store/text.ts).
CREATE TABLE text_rewrites (
  rewrite_no INTEGER PRIMARY KEY AUTOINCREMENT,
  memory     INTEGER                                  -- memories.seq, NULL for all
) STRICT;

-- A process that knows nothing takes over from here.
INSERT INTO text_rewrites (memory) VALUES (NULL);

DELETE FROM store_info WHERE key = 'text_rewrites';
