/**
 * SQL that creates the tables of OpenMemory's SQLite file in its first version, with the columns that its server makes.
 */
export const FIRST_TABLES = `
  CREATE TABLE memories (
    id TEXT PRIMARY KEY, content TEXT NOT NULL, primary_sector TEXT NOT NULL, tags TEXT, meta TEXT, created_at INTEGER,
    updated_at INTEGER, last_seen_at INTEGER, salience REAL, decay_lambda REAL, version INTEGER DEFAULT 1,
    mean_dim INTEGER, mean_vec BLOB
  );
  CREATE TABLE vectors (
    id TEXT NOT NULL, sector TEXT NOT NULL, v BLOB NOT NULL, dim INTEGER NOT NULL, PRIMARY KEY (id, sector)
  );
  CREATE TABLE waypoints (
    src_id TEXT PRIMARY KEY, dst_id TEXT NOT NULL, weight REAL NOT NULL, created_at INTEGER, updated_at INTEGER
  );
  CREATE TABLE embed_logs (id TEXT PRIMARY KEY, model TEXT, status TEXT, ts INTEGER, err TEXT);
`;

/**
 * SQL that creates the tables of OpenMemory's SQLite file in version 1.2: with users (facts have none yet), and
 * relations between facts.
 */
export const MIDDLE_TABLES = `
  CREATE TABLE memories (
    id TEXT PRIMARY KEY, user_id TEXT, segment INTEGER DEFAULT 0, content TEXT NOT NULL, simhash TEXT,
    primary_sector TEXT NOT NULL, tags TEXT, meta TEXT, created_at INTEGER, updated_at INTEGER, last_seen_at INTEGER,
    salience REAL, decay_lambda REAL, version INTEGER DEFAULT 1, mean_dim INTEGER, mean_vec BLOB, compressed_vec BLOB,
    feedback_score REAL DEFAULT 0
  );
  CREATE TABLE vectors (
    id TEXT NOT NULL, sector TEXT NOT NULL, user_id TEXT, v BLOB NOT NULL, dim INTEGER NOT NULL, PRIMARY KEY (id, sector)
  );
  CREATE TABLE waypoints (
    src_id TEXT, dst_id TEXT NOT NULL, user_id TEXT, weight REAL NOT NULL, created_at INTEGER, updated_at INTEGER,
    PRIMARY KEY (src_id, user_id)
  );
  CREATE TABLE embed_logs (id TEXT PRIMARY KEY, model TEXT, status TEXT, ts INTEGER, err TEXT);
  CREATE TABLE users (
    user_id TEXT PRIMARY KEY, summary TEXT, reflection_count INTEGER DEFAULT 0, created_at INTEGER, updated_at INTEGER
  );
  CREATE TABLE stats (
    id INTEGER PRIMARY KEY AUTOINCREMENT, type TEXT NOT NULL, count INTEGER DEFAULT 1, ts INTEGER NOT NULL
  );
  CREATE TABLE temporal_facts (
    id TEXT PRIMARY KEY, subject TEXT NOT NULL, predicate TEXT NOT NULL, object TEXT NOT NULL,
    valid_from INTEGER NOT NULL, valid_to INTEGER, confidence REAL NOT NULL CHECK (confidence >= 0 AND confidence <= 1),
    last_updated INTEGER NOT NULL, metadata TEXT, UNIQUE (subject, predicate, object, valid_from)
  );
  CREATE TABLE temporal_edges (
    id TEXT PRIMARY KEY, source_id TEXT NOT NULL, target_id TEXT NOT NULL, relation_type TEXT NOT NULL,
    valid_from INTEGER NOT NULL, valid_to INTEGER, weight REAL NOT NULL, metadata TEXT
  );
`;

/**
 * SQL that creates all tables of OpenMemory's SQLite file in version 1.3: memories, vectors and links have projects,
 * and facts have users.
 */
export const LATER_TABLES = `
  CREATE TABLE memories (
    id TEXT PRIMARY KEY, user_id TEXT, project_id TEXT, segment INTEGER DEFAULT 0, content TEXT NOT NULL, simhash TEXT,
    primary_sector TEXT NOT NULL, tags TEXT, meta TEXT, created_at INTEGER, updated_at INTEGER, last_seen_at INTEGER,
    salience REAL, decay_lambda REAL, version INTEGER DEFAULT 1, mean_dim INTEGER, mean_vec BLOB, compressed_vec BLOB,
    feedback_score REAL DEFAULT 0, coactivations INTEGER DEFAULT 0
  );
  CREATE TABLE openmemory_vectors (
    id TEXT NOT NULL, project_id TEXT, sector TEXT NOT NULL, user_id TEXT, v BLOB NOT NULL, dim INTEGER NOT NULL,
    PRIMARY KEY (id, sector)
  );
  CREATE TABLE waypoints (
    src_id TEXT, dst_id TEXT NOT NULL, user_id TEXT, project_id TEXT, weight REAL NOT NULL, created_at INTEGER,
    updated_at INTEGER, PRIMARY KEY (src_id, user_id)
  );
  CREATE TABLE embed_logs (id TEXT PRIMARY KEY, model TEXT, status TEXT, ts INTEGER, err TEXT);
  CREATE TABLE users (
    user_id TEXT PRIMARY KEY, summary TEXT, reflection_count INTEGER DEFAULT 0, created_at INTEGER, updated_at INTEGER
  );
  CREATE TABLE stats (
    id INTEGER PRIMARY KEY AUTOINCREMENT, type TEXT NOT NULL, count INTEGER DEFAULT 1, ts INTEGER NOT NULL
  );
  CREATE TABLE temporal_facts (
    id TEXT PRIMARY KEY, user_id TEXT, project_id TEXT, subject TEXT NOT NULL, predicate TEXT NOT NULL,
    object TEXT NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER,
    confidence REAL NOT NULL CHECK (confidence >= 0 AND confidence <= 1), last_updated INTEGER NOT NULL, metadata TEXT,
    UNIQUE (subject, predicate, object, valid_from)
  );
  CREATE TABLE temporal_edges (
    id TEXT PRIMARY KEY, source_id TEXT NOT NULL, target_id TEXT NOT NULL, relation_type TEXT NOT NULL,
    valid_from INTEGER NOT NULL, valid_to INTEGER, weight REAL NOT NULL, metadata TEXT,
    FOREIGN KEY (source_id) REFERENCES temporal_facts (id), FOREIGN KEY (target_id) REFERENCES temporal_facts (id)
  );
`;
