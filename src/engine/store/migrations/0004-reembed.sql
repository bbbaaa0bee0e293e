-- Jobs of a change of the embedding model, few among many: one that directs it, and a window of memories that are to be embedded.
CREATE INDEX jobs_of_reembed ON jobs (state, memory) WHERE kind = 'reembed';
