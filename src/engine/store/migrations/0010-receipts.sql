-- What a receipt tells of a reading: the text as it was extracted, what was left out of it, and where each chunk is from.
ALTER TABLE document_generations ADD COLUMN text_hash BLOB;                        -- SHA-256 of the text as UTF-8
ALTER TABLE document_generations ADD COLUMN omissions TEXT NOT NULL DEFAULT '[]';  -- JSON: what the text does not hold
ALTER TABLE chunks ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;                     -- 1: the memory is of an earlier reading
