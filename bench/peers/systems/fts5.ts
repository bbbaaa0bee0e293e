/**
 * What a program writes that needs no more than SQLite: texts, contentless FTS5 and sqlite-vec in one durable file.
 * Sign bits in vec0 find the nearest vectors, and the whole vectors, which stand in a plain table, put these in order:
 * comparing all float vectors in vec0 takes several times as long. Both lists are fused by rank. Clients at the same
 * time ask reader threads, one a core; adds that arrive together share a commit.
 */
import os from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import * as sqliteVec from 'sqlite-vec';
import type { HashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import { ftsString, queryTerms } from '../../../src/engine/text/index-text.ts';
import type { Ask, OpenSystem } from '../system.ts';

/** Number of texts in a commit while loading. */
const COMMIT = 500;
/** Number of hits by words, and of hits by vectors, that are fused. */
const CANDIDATES = 50;
/** Constant of reciprocal rank fusion, as in the paper of Cormack, Clarke and Büttcher. */
const RANK_CONSTANT = 60;

const SCHEMA = `
  CREATE TABLE memories (id INTEGER PRIMARY KEY, content TEXT NOT NULL);
  CREATE TABLE vectors (id INTEGER PRIMARY KEY, embedding BLOB NOT NULL);
  CREATE VIRTUAL TABLE words USING fts5(content, content = '', tokenize = 'porter unicode61 remove_diacritics 2');
  CREATE VIRTUAL TABLE bits USING vec0(embedding bit[768])`;

export const open: OpenSystem = async (folder, embedder) => {
  const file = path.join(folder, 'fts5.sqlite');
  const db = openFile(file);
  db.exec(SCHEMA);
  const insertText = db.prepare('INSERT INTO memories (content) VALUES (?)');
  const insertWords = db.prepare('INSERT INTO words (rowid, content) VALUES (?, ?)');
  const insertVector = db.prepare('INSERT INTO vectors (id, embedding) VALUES (?, ?)');
  const insertBits = db.prepare('INSERT INTO bits (rowid, embedding) VALUES (?, vec_quantize_binary(?))');
  const commit = db.transaction((texts: readonly string[], vectors: readonly Float32Array[]) => {
    for (const [at, text] of texts.entries()) {
      const { lastInsertRowid } = insertText.run(text);
      insertWords.run(lastInsertRowid, text);
      insertVector.run(lastInsertRowid, vectors[at]);
      // vec0 takes no other kind of integer.
      insertBits.run(BigInt(lastInsertRowid), vectors[at]);
    }
  });
  const add = async (texts: readonly string[]) =>
    commit(
      texts,
      texts.map((text) => embedder.embedOne(text, 'document')),
    );
  const search = createSearch(db, embedder);
  const readers: Reader[] = [];
  return {
    async load(texts) {
      for (let first = 0; first < texts.length; first += COMMIT) await add(texts.slice(first, first + COMMIT));
    },
    async finishLoading() {
      db.exec(`INSERT INTO words (words) VALUES ('optimize')`);
    },
    ask: async (question) => search(question),
    async openClients(count) {
      while (readers.length < os.availableParallelism()) readers.push(startReader(file));
      return Array.from({ length: count }, (_, at) => readers[at % readers.length]!.ask);
    },
    add,
    adding: { atOnce: 1, together: COMMIT, everyMs: 0 },
    async close() {
      for (const reader of readers) await reader.stop();
      db.close();
    },
  };
};

export function openFile(file: string): Database.Database {
  const db = new Database(file);
  sqliteVec.load(db);
  // Five vectors of 3 KB fill a page of this size; a smaller one would stay half empty.
  db.pragma('page_size = 16384');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma('cache_size = -65536');
  return db;
}

export function createSearch(db: Database.Database, embedder: HashedEmbedder): (question: string) => string[] {
  const byWords = db
    .prepare(`SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ${CANDIDATES}`)
    .pluck() as Database.Statement<[string], number>;
  const byVector = db
    .prepare(
      `WITH near AS (SELECT rowid FROM bits WHERE embedding MATCH vec_quantize_binary(@vector) AND k = ${CANDIDATES})
       SELECT id FROM vectors WHERE id IN (SELECT rowid FROM near) ORDER BY vec_distance_cosine(embedding, @vector)`,
    )
    .pluck() as Database.Statement<[{ vector: Float32Array }], number>;
  const content = db.prepare('SELECT content FROM memories WHERE id = ?').pluck() as Database.Statement<
    [number],
    string
  >;
  return (question) => {
    // Words without stop words, as the other systems drop them too.
    const terms = queryTerms(question).words;
    const lists = [
      terms.length === 0 ? [] : byWords.all(terms.map(ftsString).join(' OR ')),
      byVector.all({ vector: embedder.embedOne(question, 'query') }),
    ];
    const scores = new Map<number, number>();
    for (const list of lists)
      for (const [rank, id] of list.entries()) scores.set(id, (scores.get(id) ?? 0) + 1 / (RANK_CONSTANT + rank + 1));
    const best = [...scores].toSorted(([, a], [, b]) => b - a).slice(0, 10);
    return best.map(([id]) => content.get(id)!);
  };
}

interface Reader {
  readonly ask: Ask;
  stop(): Promise<unknown>;
}

/** Starts fts5-reader.ts, which answers in the order of its questions. */
function startReader(file: string): Reader {
  const worker = new Worker(new URL('./fts5-reader.ts', import.meta.url), { workerData: file });
  const waiting: ((texts: string[]) => void)[] = [];
  worker.on('message', (texts: string[]) => waiting.shift()!(texts));
  return {
    ask: (question) =>
      new Promise((resolve) => {
        waiting.push(resolve);
        worker.postMessage(question);
      }),
    stop: () => worker.terminate(),
  };
}
