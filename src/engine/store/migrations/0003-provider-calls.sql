-- What each provider call cost and who answered it; totals by day, which outlive the log; the age of cached vectors.

ALTER TABLE embed_logs ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;    -- of a language model
ALTER TABLE embed_logs ADD COLUMN cost_usd REAL NOT NULL DEFAULT 0;
ALTER TABLE embed_logs ADD COLUMN server INTEGER NOT NULL DEFAULT 0;           -- 0 the provider's own, 1.. its stand-ins
CREATE INDEX embed_logs_failed ON embed_logs (log_no) WHERE status = 'failed';

CREATE TABLE provider_usage (
  day           INTEGER NOT NULL,                     -- since 1970-01-01, UTC
  provider      TEXT NOT NULL,
  model         TEXT NOT NULL,
  purpose       TEXT NOT NULL,                        -- document, query; entities, rerank
  calls         INTEGER NOT NULL,
  failed        INTEGER NOT NULL,
  texts         INTEGER NOT NULL,                     -- of calls that completed
  tokens        INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cost_usd      REAL NOT NULL,
  cached_texts  INTEGER NOT NULL,                     -- whose vector was known
  saved_tokens  INTEGER NOT NULL,                     -- estimated
  PRIMARY KEY (day, provider, model, purpose)
) STRICT, WITHOUT ROWID;

CREATE INDEX embedding_cache_by_time ON embedding_cache (created_at);
