-- The tables of all tenants. Each is the table of the same name in a tenant's SQLite file (../../migrations), whose
-- columns mean the same here; `tenant`, the number of the tenant, begins every key. Times are Unix milliseconds.

-- Numbers that are never given twice, as AUTOINCREMENT keeps them: the last number that each table has given.
CREATE TABLE numbers (
  tenant integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  name   text COLLATE "C" NOT NULL,
  last   bigint NOT NULL,
  PRIMARY KEY (tenant, name)
) WITH (fillfactor = 50);

CREATE TABLE store_info (
  tenant integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  key    text COLLATE "C" NOT NULL,
  value  text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, key)
);

CREATE TABLE users (
  tenant   integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  user_no  bigint NOT NULL,
  user_id  text COLLATE "C" NOT NULL,
  memories bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, user_no),
  UNIQUE (tenant, user_id)
);

CREATE TABLE memories (
  tenant           integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  seq              bigint NOT NULL DEFAULT next_number('memories'),
  id               text COLLATE "C" NOT NULL,
  user_no          bigint NOT NULL,
  session_id       text COLLATE "C" NOT NULL DEFAULT '',
  event_time       bigint NOT NULL,
  event_time_given bigint NOT NULL,
  created_at       bigint NOT NULL,
  updated_at       bigint NOT NULL,
  valid_from       bigint,
  valid_to         bigint,
  expires_at       bigint,
  version          bigint NOT NULL DEFAULT 1,
  confidence       double precision NOT NULL DEFAULT 1,
  importance       double precision,
  type             text COLLATE "C",
  external_id      text COLLATE "C",
  content_hash     bytea NOT NULL,
  tags             text COLLATE "C" NOT NULL DEFAULT '[]',
  files            text COLLATE "C" NOT NULL DEFAULT '[]',
  entities         text COLLATE "C" NOT NULL DEFAULT '[]',
  title            text COLLATE "C" NOT NULL DEFAULT '',
  gist             text COLLATE "C" NOT NULL DEFAULT '',
  metadata         text COLLATE "C" NOT NULL DEFAULT '{}',
  content          text COLLATE "C" NOT NULL,
  value            text COLLATE "C",
  PRIMARY KEY (tenant, seq),
  UNIQUE (tenant, id)
);
CREATE INDEX memories_by_type ON memories (tenant, type, user_no) WHERE type <> '';
CREATE INDEX memories_by_event_time ON memories (tenant, event_time);
CREATE INDEX memories_by_user ON memories (tenant, user_no);
CREATE INDEX memories_by_time ON memories (tenant, user_no, event_time);
CREATE INDEX memories_by_session ON memories (tenant, user_no, session_id, event_time);
CREATE INDEX memories_by_hash ON memories (tenant, user_no, session_id, content_hash);
CREATE INDEX memories_by_expiry ON memories (tenant, expires_at) WHERE expires_at > 0;
CREATE INDEX memories_by_external ON memories (tenant, external_id, user_no) WHERE external_id <> '';

CREATE TABLE memory_dynamics (
  tenant            integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  seq               bigint NOT NULL,
  state             text COLLATE "C" NOT NULL DEFAULT 'queued',
  status            text COLLATE "C" NOT NULL DEFAULT 'active',
  primary_sector    text COLLATE "C" NOT NULL DEFAULT 'semantic',
  sectors           bigint NOT NULL DEFAULT 0,
  sector_confidence double precision NOT NULL DEFAULT 0,
  salience          double precision NOT NULL,
  salience_at       bigint NOT NULL,
  salience_now      double precision NOT NULL,
  decay_lambda      double precision NOT NULL,
  strength          double precision NOT NULL DEFAULT 1,
  strength_at       bigint NOT NULL,
  access_count      bigint NOT NULL DEFAULT 0,
  last_seen_at      bigint NOT NULL,
  chain_no          bigint,
  generation_no     bigint,
  writer_no         bigint,
  boost_hour        bigint,
  boosted           bigint,
  PRIMARY KEY (tenant, seq),
  FOREIGN KEY (tenant, seq) REFERENCES memories (tenant, seq) ON DELETE CASCADE
);
CREATE INDEX memory_dynamics_by_generation ON memory_dynamics (tenant, generation_no) WHERE generation_no > 0;
CREATE INDEX memory_dynamics_unready ON memory_dynamics (tenant, seq) WHERE state <> 'ready';

CREATE TABLE memory_revisions (
  tenant      integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  memory      bigint NOT NULL,
  version     bigint NOT NULL,
  replaced_at bigint NOT NULL,
  fields      text COLLATE "C" NOT NULL,
  by_link     bigint NOT NULL,
  status      text COLLATE "C" NOT NULL,
  event_time  bigint NOT NULL,
  valid_from  bigint,
  valid_to    bigint,
  snapshot    text COLLATE "C" NOT NULL,
  writer_no   bigint,
  PRIMARY KEY (tenant, memory, version),
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, seq) ON DELETE CASCADE
);
CREATE INDEX memory_revisions_by_writer ON memory_revisions (tenant, writer_no, memory) WHERE writer_no > 0;

CREATE TABLE text_rewrites (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  rewrite_no bigint NOT NULL DEFAULT next_number('text_rewrites'),
  memory     bigint,
  PRIMARY KEY (tenant, rewrite_no)
);

CREATE TABLE models (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  model_no   bigint NOT NULL DEFAULT next_row('models', 'model_no'),
  provider   text COLLATE "C" NOT NULL,
  model      text COLLATE "C" NOT NULL,
  dimensions bigint NOT NULL,
  encoding   text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (tenant, model_no),
  UNIQUE (tenant, provider, model, dimensions, encoding)
);

CREATE TABLE vectors (
  tenant    integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  vector_no bigint NOT NULL DEFAULT next_number('vectors'),
  memory    bigint NOT NULL,
  user_no   bigint NOT NULL,
  model_no  bigint NOT NULL,
  window_no bigint NOT NULL,
  role      bigint NOT NULL,
  sector    text COLLATE "C" NOT NULL DEFAULT '',
  text_hash bytea,
  embedding bytea NOT NULL,
  precision bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, vector_no),
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, seq) ON DELETE CASCADE
);
CREATE INDEX vectors_by_text ON vectors (tenant, text_hash, model_no) WHERE text_hash <> '';
CREATE UNIQUE INDEX vectors_by_memory ON vectors (tenant, memory, model_no, sector, window_no);

CREATE TABLE vector_codes (
  tenant    integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  vector_no bigint NOT NULL,
  model_no  bigint NOT NULL,
  memory    bigint NOT NULL,
  user_no   bigint NOT NULL,
  role      bigint NOT NULL,
  code      bytea NOT NULL,
  PRIMARY KEY (tenant, vector_no)
);

CREATE TABLE vector_removals (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  removal_no bigint NOT NULL DEFAULT next_number('vector_removals'),
  vector_no  bigint,
  PRIMARY KEY (tenant, removal_no)
);

CREATE TABLE cached_copies (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  model_no   bigint NOT NULL,
  text_hash  bytea NOT NULL,
  embedding  bytea NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (tenant, model_no, text_hash)
);

CREATE TABLE embed_logs (
  tenant        integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  log_no        bigint NOT NULL DEFAULT next_row('embed_logs', 'log_no'),
  at            bigint NOT NULL,
  provider      text COLLATE "C" NOT NULL,
  model         text COLLATE "C" NOT NULL,
  purpose       text COLLATE "C" NOT NULL,
  texts         bigint NOT NULL,
  tokens        bigint NOT NULL,
  ms            double precision NOT NULL,
  status        text COLLATE "C" NOT NULL,
  error_code    text COLLATE "C",
  error         text COLLATE "C",
  output_tokens bigint NOT NULL DEFAULT 0,
  cost_usd      double precision NOT NULL DEFAULT 0,
  server        bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, log_no)
);
CREATE INDEX embed_logs_failed ON embed_logs (tenant, log_no) WHERE status = 'failed';
CREATE INDEX embed_logs_by_time ON embed_logs (tenant, at);

CREATE TABLE provider_usage (
  tenant        integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  day           bigint NOT NULL,
  provider      text COLLATE "C" NOT NULL,
  model         text COLLATE "C" NOT NULL,
  purpose       text COLLATE "C" NOT NULL,
  calls         bigint NOT NULL,
  failed        bigint NOT NULL,
  texts         bigint NOT NULL,
  tokens        bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cost_usd      double precision NOT NULL,
  cached_texts  bigint NOT NULL,
  saved_tokens  bigint NOT NULL,
  PRIMARY KEY (tenant, day, provider, model, purpose)
);

CREATE TABLE edges (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  src        bigint NOT NULL,
  dst        bigint NOT NULL,
  type       text COLLATE "C" NOT NULL,
  similarity double precision,
  weight     double precision NOT NULL,
  automatic  bigint NOT NULL,
  winner     bigint,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  writer_no  bigint,
  PRIMARY KEY (tenant, src, dst, type),
  FOREIGN KEY (tenant, dst) REFERENCES memories (tenant, seq) ON DELETE CASCADE,
  FOREIGN KEY (tenant, src) REFERENCES memories (tenant, seq) ON DELETE CASCADE
);
CREATE INDEX edges_by_writer ON edges (tenant, writer_no) WHERE writer_no > 0;
CREATE INDEX edges_contradicting ON edges (tenant, dst) WHERE type = 'contradicts';
CREATE INDEX edges_of_reflections ON edges (tenant, src) WHERE type = 'derived_from' AND automatic = 1;
CREATE UNIQUE INDEX edges_one_waypoint ON edges (tenant, src) WHERE type = 'waypoint' AND automatic = 1;
CREATE INDEX edges_by_dst_weight ON edges (tenant, dst, weight DESC);
CREATE INDEX edges_by_src_weight ON edges (tenant, src, weight DESC);
CREATE INDEX edges_by_dst ON edges (tenant, dst, type);

CREATE TABLE chains (
  tenant   integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  chain_no bigint NOT NULL DEFAULT next_number('chains'),
  live_end bigint NOT NULL,
  PRIMARY KEY (tenant, chain_no)
);

CREATE TABLE entities (
  tenant    integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  entity_no bigint NOT NULL DEFAULT next_row('entities', 'entity_no'),
  user_no   bigint NOT NULL,
  name      text COLLATE "C" NOT NULL,
  label     text COLLATE "C" NOT NULL,
  type      text COLLATE "C" NOT NULL,
  mentions  bigint NOT NULL,
  PRIMARY KEY (tenant, entity_no),
  UNIQUE (tenant, name, user_no)
);

CREATE TABLE entity_mentions (
  tenant    integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  entity_no bigint NOT NULL,
  memory    bigint NOT NULL,
  label     text COLLATE "C" NOT NULL,
  type      text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, entity_no, memory),
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, seq) ON DELETE CASCADE,
  FOREIGN KEY (tenant, entity_no) REFERENCES entities (tenant, entity_no) ON DELETE CASCADE
);
CREATE INDEX entity_mentions_by_memory ON entity_mentions (tenant, memory);

CREATE TABLE entity_relations (
  tenant   integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  src      bigint NOT NULL,
  dst      bigint NOT NULL,
  relation text COLLATE "C" NOT NULL,
  memory   bigint NOT NULL,
  PRIMARY KEY (tenant, src, dst, relation, memory),
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, seq) ON DELETE CASCADE,
  FOREIGN KEY (tenant, dst) REFERENCES entities (tenant, entity_no) ON DELETE CASCADE,
  FOREIGN KEY (tenant, src) REFERENCES entities (tenant, entity_no) ON DELETE CASCADE
);
CREATE INDEX entity_relations_by_memory ON entity_relations (tenant, memory);
CREATE INDEX entity_relations_by_dst ON entity_relations (tenant, dst);

CREATE TABLE calibrations (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  model_no   bigint NOT NULL,
  fitted_at  bigint NOT NULL,
  memories   bigint NOT NULL,
  parameters text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, model_no)
);

CREATE TABLE documents (
  tenant      integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  document_no bigint NOT NULL DEFAULT next_number('documents'),
  id          text COLLATE "C" NOT NULL,
  user_id     text COLLATE "C" NOT NULL,
  external_id text COLLATE "C" NOT NULL DEFAULT '',
  session_id  text COLLATE "C" NOT NULL DEFAULT '',
  source      text COLLATE "C" NOT NULL DEFAULT 'upload',
  url         text COLLATE "C" NOT NULL DEFAULT '',
  state       text COLLATE "C" NOT NULL,
  error_code  text COLLATE "C",
  error       text COLLATE "C",
  live_no     bigint,
  next_no     bigint,
  created_at  bigint NOT NULL,
  updated_at  bigint NOT NULL,
  PRIMARY KEY (tenant, document_no),
  UNIQUE (tenant, id)
);
CREATE INDEX documents_by_state ON documents (tenant, state, document_no);
CREATE INDEX documents_by_url ON documents (tenant, url, user_id) WHERE url <> '';
CREATE INDEX documents_by_external ON documents (tenant, external_id, user_id) WHERE external_id <> '';

CREATE TABLE document_generations (
  tenant        integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  generation_no bigint NOT NULL DEFAULT next_number('document_generations'),
  document_no   bigint NOT NULL,
  hidden        bigint NOT NULL DEFAULT 1,
  created_at    bigint NOT NULL,
  session_id    text COLLATE "C" NOT NULL DEFAULT '',
  source        text COLLATE "C" NOT NULL,
  url           text COLLATE "C" NOT NULL DEFAULT '',
  always        bigint NOT NULL DEFAULT 0,
  upload        text COLLATE "C" NOT NULL DEFAULT '',
  file_name     text COLLATE "C" NOT NULL DEFAULT '',
  declared      text COLLATE "C",
  charset       text COLLATE "C",
  file_hash     bytea,
  bytes         bigint,
  given_title   text COLLATE "C" NOT NULL DEFAULT '',
  type          text COLLATE "C",
  tags          text COLLATE "C" NOT NULL DEFAULT '[]',
  metadata      text COLLATE "C" NOT NULL DEFAULT '{}',
  event_time    bigint,
  expires_at    bigint,
  format        text COLLATE "C",
  title         text COLLATE "C" NOT NULL DEFAULT '',
  authors       text COLLATE "C" NOT NULL DEFAULT '[]',
  language      text COLLATE "C",
  published_at  bigint,
  modified_at   bigint,
  etag          text COLLATE "C",
  last_modified text COLLATE "C",
  pages         bigint,
  pages_done    bigint NOT NULL DEFAULT 0,
  characters    bigint NOT NULL DEFAULT 0,
  tokens        bigint NOT NULL DEFAULT 0,
  chunks        bigint NOT NULL DEFAULT 0,
  warnings      text COLLATE "C" NOT NULL DEFAULT '[]',
  receipt       text COLLATE "C",
  stages        text COLLATE "C" NOT NULL DEFAULT '{}',
  shown_at      bigint,
  failed_at     bigint,
  settled_at    bigint,
  writer_no     bigint,
  text_hash     bytea,
  omissions     text COLLATE "C" NOT NULL DEFAULT '[]',
  PRIMARY KEY (tenant, generation_no),
  FOREIGN KEY (tenant, document_no) REFERENCES documents (tenant, document_no) ON DELETE CASCADE
);
CREATE INDEX document_generations_hidden ON document_generations (tenant, generation_no) WHERE hidden > 0;
CREATE INDEX document_generations_uploads ON document_generations (tenant, failed_at, bytes, upload) WHERE upload <> '';
CREATE INDEX document_generations_by_expiry ON document_generations (tenant, expires_at) WHERE expires_at > 0;
CREATE INDEX document_generations_by_url ON document_generations (tenant, url) WHERE url <> '';
CREATE INDEX document_generations_by_hash ON document_generations (tenant, file_hash);
CREATE INDEX document_generations_by_document ON document_generations (tenant, document_no);

CREATE TABLE chunks (
  tenant        integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  generation_no bigint NOT NULL,
  chunk_index   bigint NOT NULL,
  memory        bigint NOT NULL,
  start_offset  bigint NOT NULL,
  end_offset    bigint NOT NULL,
  page_from     bigint,
  page_to       bigint,
  heading_path  text COLLATE "C" NOT NULL DEFAULT '[]',
  tokens        bigint NOT NULL DEFAULT 0,
  kept          bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, generation_no, chunk_index),
  FOREIGN KEY (tenant, generation_no) REFERENCES document_generations (tenant, generation_no) ON DELETE CASCADE
);
CREATE INDEX chunks_by_memory ON chunks (tenant, memory);

CREATE TABLE jobs (
  tenant           integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  seq              bigint NOT NULL DEFAULT next_number('jobs'),
  uuid             bytea NOT NULL,
  id               text COLLATE "C" GENERATED ALWAYS AS (encode(uuid, 'hex')::uuid::text) STORED,
  kind             text COLLATE "C" NOT NULL,
  memory           bigint,
  step             text COLLATE "C" NOT NULL,
  state            text COLLATE "C" NOT NULL,
  priority         bigint NOT NULL DEFAULT 0,
  attempts         bigint NOT NULL DEFAULT 0,
  crashes          bigint NOT NULL DEFAULT 0,
  suspect          bigint NOT NULL DEFAULT 0,
  run_at           bigint NOT NULL,
  lease_owner      text COLLATE "C",
  lease_until      bigint,
  lease_epoch      bigint NOT NULL DEFAULT 0,
  lease_alone      bigint NOT NULL DEFAULT 0,
  dispatches       bigint NOT NULL DEFAULT 0,
  dispatched_until bigint NOT NULL DEFAULT 0,
  error_code       text COLLATE "C",
  error            text COLLATE "C",
  created_at       bigint NOT NULL,
  updated_at       bigint NOT NULL,
  finished_at      bigint,
  timeline         text COLLATE "C" NOT NULL DEFAULT '',
  document         bigint,
  trace_context    text COLLATE "C",
  PRIMARY KEY (tenant, seq),
  UNIQUE (tenant, uuid)
);
CREATE INDEX jobs_of_reflections ON jobs (tenant, state) WHERE kind = 'reflection';
CREATE INDEX jobs_of_contradictions ON jobs (tenant, state) WHERE kind = 'contradictions';
CREATE INDEX jobs_of_reembed ON jobs (tenant, state, memory) WHERE kind = 'reembed';
CREATE INDEX jobs_of_documents ON jobs (tenant, state) WHERE kind = 'document';
CREATE INDEX jobs_by_document ON jobs (tenant, document, state) WHERE document > 0;
CREATE INDEX jobs_by_end ON jobs (tenant, state, finished_at) WHERE finished_at > 0;
CREATE INDEX jobs_by_memory ON jobs (tenant, memory);
CREATE INDEX jobs_leased ON jobs (tenant, lease_until) WHERE state = 'active';
CREATE INDEX jobs_due ON jobs (tenant, step, suspect, priority, run_at, seq, state) WHERE state IN ('queued', 'failed');

CREATE TABLE reflections (
  tenant        integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  reflection_no bigint NOT NULL DEFAULT next_row('reflections', 'reflection_no'),
  user_no       bigint NOT NULL,
  session_id    text COLLATE "C",
  job           bigint,
  up_to         bigint,
  PRIMARY KEY (tenant, reflection_no),
  FOREIGN KEY (tenant, job) REFERENCES jobs (tenant, seq) ON DELETE CASCADE,
  FOREIGN KEY (tenant, user_no) REFERENCES users (tenant, user_no) ON DELETE CASCADE
);
CREATE UNIQUE INDEX reflections_by_job ON reflections (tenant, job);
CREATE INDEX reflections_by_user ON reflections (tenant, user_no);

CREATE TABLE vector_parts (
  tenant  integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  part_no bigint NOT NULL,
  bytes   bytea NOT NULL,
  PRIMARY KEY (tenant, part_no)
);

CREATE TABLE writers (
  tenant    integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  writer_no bigint NOT NULL DEFAULT next_row('writers', 'writer_no'),
  key_id    text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, writer_no),
  UNIQUE (tenant, key_id)
);

CREATE TABLE audit (
  tenant   integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  audit_no bigint NOT NULL DEFAULT next_number('audit'),
  at       bigint NOT NULL,
  key_id   text COLLATE "C" NOT NULL,
  action   text COLLATE "C" NOT NULL,
  detail   text COLLATE "C" NOT NULL,
  hash     bytea NOT NULL,
  PRIMARY KEY (tenant, audit_no)
);

CREATE TABLE idempotency_keys (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  key_hash   bytea NOT NULL,
  route      text COLLATE "C" NOT NULL,
  body_hash  bytea,
  reply      text COLLATE "C",
  first_seq  bigint,
  last_seq   bigint,
  created_at bigint NOT NULL,
  PRIMARY KEY (tenant, key_hash, route)
);
CREATE INDEX idempotency_by_memory ON idempotency_keys (tenant, last_seq, first_seq);
CREATE INDEX idempotency_by_time ON idempotency_keys (tenant, created_at);

CREATE TABLE namespaces (
  tenant       integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  namespace_no bigint NOT NULL DEFAULT next_number('namespaces'),
  user_no      bigint NOT NULL,
  path         text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, namespace_no),
  UNIQUE (tenant, user_no, path)
);
CREATE INDEX namespaces_by_labels_of_all ON namespaces (tenant, replace(path, '.', chr(1)), user_no);
CREATE UNIQUE INDEX namespaces_by_labels ON namespaces (tenant, user_no, replace(path, '.', chr(1)));

CREATE TABLE items (
  tenant       integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  memory       bigint NOT NULL,
  namespace_no bigint NOT NULL,
  item_key     text COLLATE "C" NOT NULL,
  ttl_ms       bigint,
  PRIMARY KEY (tenant, memory),
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, seq) ON DELETE CASCADE
);
CREATE UNIQUE INDEX items_by_key ON items (tenant, namespace_no, item_key) WHERE namespace_no > 0;

CREATE TABLE labels (
  tenant   integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  label_no bigint NOT NULL DEFAULT next_number('labels'),
  kind     bigint NOT NULL,
  user_no  bigint NOT NULL,
  label    text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, label_no),
  UNIQUE (tenant, kind, label, user_no)
);
CREATE INDEX labels_by_user ON labels (tenant, kind, user_no, label);

CREATE TABLE memory_labels (
  tenant   integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  label_no bigint NOT NULL,
  memory   bigint NOT NULL,
  PRIMARY KEY (tenant, label_no, memory),
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, seq) ON DELETE CASCADE
);
CREATE INDEX memory_labels_by_memory ON memory_labels (tenant, memory);

CREATE TABLE session_logs (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  log_no     bigint NOT NULL DEFAULT next_number('session_logs'),
  user_id    text COLLATE "C",
  session_id text COLLATE "C",
  items      bigint NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (tenant, log_no),
  UNIQUE (tenant, user_id, session_id)
);

CREATE TABLE session_log_items (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  log_no     bigint NOT NULL,
  position   bigint NOT NULL,
  created_at bigint NOT NULL,
  item       text COLLATE "C" NOT NULL,
  writer_no  bigint,
  PRIMARY KEY (tenant, log_no, position)
);
CREATE INDEX session_log_items_by_writer ON session_log_items (tenant, writer_no, log_no) WHERE writer_no > 0;

CREATE TABLE session_log_operations (
  tenant         integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  operation_hash bytea NOT NULL,
  log_no         bigint NOT NULL,
  content_hash   bytea,
  reply          text COLLATE "C",
  created_at     bigint NOT NULL,
  PRIMARY KEY (tenant, operation_hash)
);
CREATE INDEX session_log_operations_by_time ON session_log_operations (tenant, created_at);
CREATE INDEX session_log_operations_by_log ON session_log_operations (tenant, log_no);

CREATE TABLE events (
  tenant   integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  event_no bigint NOT NULL DEFAULT next_row('events', 'event_no'),
  at       bigint NOT NULL,
  kind     bigint NOT NULL,
  memory   bigint,
  user_no  bigint,
  subject  bytea,
  PRIMARY KEY (tenant, event_no)
);

CREATE TABLE event_feed (
  tenant  integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  row_no  bigint NOT NULL CHECK (row_no = 1),
  feed_id text COLLATE "C" NOT NULL,
  is_on   bigint NOT NULL,
  PRIMARY KEY (tenant, row_no)
);

CREATE TABLE erased_users (
  tenant    integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  user_no   bigint NOT NULL,
  user_hash bytea NOT NULL,
  erased_at bigint NOT NULL,
  PRIMARY KEY (tenant, user_no),
  UNIQUE (tenant, user_hash)
);

CREATE TABLE recalls (
  tenant    integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  recall_no bigint NOT NULL DEFAULT next_row('recalls', 'recall_no'),
  recall_id text COLLATE "C" NOT NULL,
  asked_at  bigint NOT NULL,
  users     text COLLATE "C" NOT NULL,
  sessions  text COLLATE "C" NOT NULL,
  head      text COLLATE "C" NOT NULL,
  bytes     bigint NOT NULL,
  PRIMARY KEY (tenant, recall_no),
  UNIQUE (tenant, recall_id)
);
CREATE INDEX recalls_by_time ON recalls (tenant, asked_at);

CREATE TABLE recall_candidates (
  tenant    integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  recall_no bigint NOT NULL,
  place     bigint NOT NULL,
  memory    bigint NOT NULL,
  data      text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, recall_no, place),
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, seq) ON DELETE CASCADE,
  FOREIGN KEY (tenant, recall_no) REFERENCES recalls (tenant, recall_no) ON DELETE CASCADE
);
CREATE INDEX recall_candidates_by_memory ON recall_candidates (tenant, memory);

CREATE TABLE recall_feedback (
  tenant    integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  recall_no bigint NOT NULL,
  memory    bigint NOT NULL,
  verdict   text COLLATE "C" NOT NULL,
  given_at  bigint NOT NULL,
  PRIMARY KEY (tenant, recall_no, memory),
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, seq) ON DELETE CASCADE,
  FOREIGN KEY (tenant, recall_no) REFERENCES recalls (tenant, recall_no) ON DELETE CASCADE
);
CREATE INDEX recall_feedback_by_memory ON recall_feedback (tenant, memory);

CREATE TABLE recall_total (
  tenant integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  row_no bigint NOT NULL CHECK (row_no = 1),
  bytes  bigint NOT NULL,
  PRIMARY KEY (tenant, row_no)
);

CREATE TABLE eval_sets (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  set_no     bigint NOT NULL DEFAULT next_number('eval_sets'),
  name       text COLLATE "C" NOT NULL,
  guard      bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (tenant, set_no),
  UNIQUE (tenant, name)
);

CREATE TABLE eval_items (
  tenant  integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  set_no  bigint NOT NULL,
  place   bigint NOT NULL,
  user_id text COLLATE "C",
  item    text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, set_no, place)
);
CREATE INDEX eval_items_by_user ON eval_items (tenant, user_id) WHERE user_id IS NOT NULL;

CREATE TABLE eval_runs (
  tenant integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  run_no bigint NOT NULL DEFAULT next_number('eval_runs'),
  set_no bigint NOT NULL,
  run    text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, run_no)
);
CREATE INDEX eval_runs_by_set ON eval_runs (tenant, set_no, run_no);

CREATE TABLE standing_queries (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  query_no   bigint NOT NULL DEFAULT next_number('standing_queries'),
  id         text COLLATE "C" NOT NULL,
  user_id    text COLLATE "C",
  query      text COLLATE "C" NOT NULL,
  filter     text COLLATE "C" NOT NULL,
  given      text COLLATE "C" NOT NULL,
  min_score  double precision,
  created_at bigint NOT NULL,
  PRIMARY KEY (tenant, query_no),
  UNIQUE (tenant, id)
);
CREATE INDEX standing_queries_by_user ON standing_queries (tenant, user_id);

CREATE TABLE standing_answers (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  query_no   bigint NOT NULL,
  memory     bigint NOT NULL,
  score      double precision,
  supersedes bigint,
  at         bigint NOT NULL,
  PRIMARY KEY (tenant, query_no, memory),
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, seq) ON DELETE CASCADE,
  FOREIGN KEY (tenant, query_no) REFERENCES standing_queries (tenant, query_no) ON DELETE CASCADE
);
CREATE INDEX standing_answers_by_memory ON standing_answers (tenant, memory);

CREATE TABLE standing_due (
  tenant      integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  due_no      bigint NOT NULL DEFAULT next_number('standing_due'),
  memory      bigint NOT NULL,
  lease_until bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, due_no),
  UNIQUE (tenant, memory),
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, seq) ON DELETE CASCADE
);

CREATE TABLE webhooks (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  hook_no    bigint NOT NULL DEFAULT next_number('webhooks'),
  id         text COLLATE "C" NOT NULL,
  query_no   bigint,
  user_id    text COLLATE "C",
  url        text COLLATE "C" NOT NULL,
  kinds      text COLLATE "C" NOT NULL,
  secret     text COLLATE "C" NOT NULL,
  since_no   bigint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (tenant, hook_no),
  UNIQUE (tenant, id),
  FOREIGN KEY (tenant, query_no) REFERENCES standing_queries (tenant, query_no) ON DELETE CASCADE
);
CREATE INDEX webhooks_by_user ON webhooks (tenant, user_id);
CREATE INDEX webhooks_by_query ON webhooks (tenant, query_no);

CREATE TABLE deliveries (
  tenant      integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  delivery_no bigint NOT NULL DEFAULT next_number('deliveries'),
  id          text COLLATE "C" NOT NULL,
  hook_no     bigint NOT NULL,
  at          bigint NOT NULL,
  user_id     text COLLATE "C",
  event       text COLLATE "C" NOT NULL,
  state       text COLLATE "C" NOT NULL DEFAULT 'pending',
  attempts    bigint NOT NULL DEFAULT 0,
  next_at     bigint NOT NULL,
  last_status bigint,
  last_error  text COLLATE "C",
  ended_at    bigint,
  PRIMARY KEY (tenant, delivery_no),
  UNIQUE (tenant, id),
  FOREIGN KEY (tenant, hook_no) REFERENCES webhooks (tenant, hook_no) ON DELETE CASCADE
);
CREATE INDEX deliveries_by_user ON deliveries (tenant, user_id);
CREATE INDEX deliveries_ended ON deliveries (tenant, ended_at) WHERE state <> 'pending';
CREATE INDEX deliveries_by_hook ON deliveries (tenant, hook_no, state, delivery_no);
CREATE INDEX deliveries_pending_by_hook ON deliveries (tenant, hook_no, next_at) WHERE state = 'pending';
CREATE INDEX deliveries_pending ON deliveries (tenant, next_at) WHERE state = 'pending';

CREATE TABLE webhook_cursor (
  tenant   integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  row_no   bigint NOT NULL CHECK (row_no = 1),
  feed_id  text COLLATE "C" NOT NULL,
  event_no bigint NOT NULL,
  PRIMARY KEY (tenant, row_no)
);

CREATE TABLE erasures (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  erasure_no bigint NOT NULL DEFAULT next_number('erasures'),
  id         text COLLATE "C" NOT NULL,
  kind       text COLLATE "C" NOT NULL,
  key_id     text COLLATE "C" NOT NULL,
  begun_at   bigint NOT NULL,
  closed_at  bigint,
  detail     text COLLATE "C" NOT NULL DEFAULT '{}',
  ids        text COLLATE "C" NOT NULL DEFAULT '[]',
  words      text COLLATE "C" NOT NULL DEFAULT '[]',
  phrases    text COLLATE "C" NOT NULL DEFAULT '[]',
  chain_no   bigint,
  hash       bytea,
  PRIMARY KEY (tenant, erasure_no),
  UNIQUE (tenant, chain_no),
  UNIQUE (tenant, id)
);

CREATE TABLE learned (
  tenant     integer NOT NULL REFERENCES tenants (tenant) ON DELETE CASCADE,
  learned_no bigint NOT NULL DEFAULT next_number('learned'),
  id         text COLLATE "C" NOT NULL,
  at         bigint NOT NULL,
  state      text COLLATE "C" NOT NULL,
  data       text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, learned_no),
  UNIQUE (tenant, id)
);
