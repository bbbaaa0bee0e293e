import path from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { expect } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import { DAY_MS } from '../../src/engine/dynamics.ts';
import type { Engine, Tenant } from '../../src/engine/engine.ts';
import type { AddOptions } from '../../src/engine/types.ts';
import type { MaintenanceContext } from '../../src/engine/upkeep/maintenance-context.ts';
import { runBatch } from '../../src/engine/batches/run-batch.ts';
import type { BatchContext, BatchResult } from '../../src/engine/batches/batch-context.ts';
import { runNextQuestions } from '../../src/engine/batches/reason.ts';
import { runNextDocument } from '../../src/engine/batches/run-document.ts';
import { readRetrievalDefaults } from '../../src/engine/control/retrieval-defaults.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { openEngine } from '../../src/engine/open-engine.ts';
import { openParts } from '../../src/engine/parts/engine-parts.ts';
import { silentLogger, type Clock, type Embedder, type PageFetcher } from '../../src/engine/ports.ts';
import { languageModelOf } from '../../src/engine/providers/language-model-of.ts';
import type { SqliteStore } from '../../src/engine/store/open-store.ts';
import { copyBlankFiles } from './blank-files.ts';
import { newMemory, type TestMemory } from './new-memory.ts';
import { storeSettings } from './store-settings.ts';
import { sharedParser } from './shared-parser.ts';
import { tempFolder } from './temp-folder.ts';
import { sqliteOf } from './sqlite-of.ts';

export { newMemory, type TestMemory };

/** On a machine that does much else a query would go on without its vector, and give another answer. */
const DEFAULTS = { OM_VEC_DIM: '256', OM_QUERY_EMBED_TIMEOUT_MS: '60000' };

/** Monday, 2026-01-05, 00:00 UTC. */
export const START = Date.UTC(2026, 0, 5);

export interface ManualClock extends Clock {
  set(now: number): void;
  advance(ms: number): void;
  advanceDays(days: number): void;
}

export function createManualClock(now = START): ManualClock {
  let time = now;
  return {
    now: () => time,
    set: (next) => void (time = next),
    advance: (ms) => void (time += ms),
    advanceDays: (days) => void (time += Math.round(days * DAY_MS)),
  };
}

/**
 * A real engine on a file of its own (or on PostgreSQL with `OM_DATABASE_URL`). A test sets its clock by hand, and no
 * job runs until the test calls for it.
 */
export interface TestEngine extends AsyncDisposable {
  readonly engine: Engine;
  readonly tenant: Tenant;
  readonly clock: ManualClock;
  readonly file: string;
  /** The store (database connection) that the worker uses. */
  readonly store: SqliteStore;
  readonly batch: BatchContext;
  readonly maintenance: MaintenanceContext;
  /** Adds one memory, and throws if it is not accepted. */
  add(
    memory: TestMemory,
    options?: AddOptions,
  ): Promise<{ id: string; jobId: string; jobNo: number; memoryNo: number }>;
  runBatch(size?: number): Promise<BatchResult>;
  /**
   * Runs all jobs that are due, documents first.
   * @param size greatest number of jobs in a batch
   * @returns the number of jobs that were claimed
   */
  drain(size?: number): Promise<number>;
  /**
   * Runs the due jobs that need the language model. With `alone` it runs only jobs that were active when a worker died.
   */
  askQuestions(options?: { readonly alone?: boolean; readonly signal?: AbortSignal }): Promise<BatchResult>;
  /**
   * Processes one document that is due.
   * @returns whether there was one
   */
  readDocument(signal?: AbortSignal): Promise<boolean>;
  memoryNoOf(id: string): number;
  /** Returns the first row of a statement's result, or its only column. */
  get<T>(sql: string, ...parameters: unknown[]): T;
  all<T>(sql: string, ...parameters: unknown[]): T[];
  /** Closes the engine, after the pending writes of recalls. The file is not deleted. */
  close(): Promise<void>;
}

export interface TestEngineOptions {
  readonly settings?: Readonly<Record<string, string>>;
  readonly file?: string;
  readonly clock?: ManualClock;
  /** Replaces the worker's embedder by one that wraps it. */
  readonly embedder?: (embedder: Embedder) => Embedder;
  /** Fetches web pages in place of the engine's own fetcher, which fetches public pages only. */
  readonly pageFetcher?: PageFetcher;
}

export async function openTestEngine(options: TestEngineOptions = {}): Promise<TestEngine> {
  const clock = options.clock ?? createManualClock();
  const file = options.file ?? path.join(tempFolder(), 'cairn.sqlite');
  const { settings = {} } = options;
  const config = readConfig({ ...DEFAULTS, ...settings, ...(await storeSettings(file, settings)), OM_DB_PATH: file });
  // A tenant in PostgreSQL must have no file.
  if (config.OM_DATABASE_URL === undefined) copyBlankFiles(config);
  // The test works off the ledger itself.
  const dispatcher = { dispatch() {}, close: async () => {} };
  const engine = await openEngine({ config, clock, writer: 'inline', dispatcher });
  const parts = openParts({ config, clock, metrics: createMetrics(), role: 'worker', onCall: () => {} });
  const common = {
    open: () => parts.pool.get(file),
    config,
    clock,
    metrics: createMetrics(),
    logger: silentLogger,
  };
  const batch: BatchContext = {
    ...common,
    embedder: parts.embedder && (options.embedder?.(parts.embedder) ?? parts.embedder),
    gatherer: parts.gatherer,
    sourceOf: parts.sourceOf,
    languageModel: languageModelOf(file, parts.languageModel),
    documentParser: sharedParser(config),
    pageFetcher: options.pageFetcher ?? parts.pageFetcher,
    newId: uuidv7,
    owner: 'test worker',
    defaults: () => readRetrievalDefaults(engine.control, 'default'),
  };
  const tenant = await engine.tenant('default');
  const store = () => parts.pool.get(file).store;
  const memoryNoOf = (id: string) => store().prepare('SELECT seq FROM memories WHERE id = ?').pluck().get(id) as number;
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    await engine.close();
    await parts.pageFetcher?.close();
    parts.pool.close();
  };
  return {
    engine,
    tenant,
    clock,
    file,
    get store() {
      return sqliteOf(store());
    },
    batch,
    maintenance: common,
    async add(memory, addOptions) {
      const outcome = (await tenant.addMemories([newMemory(memory)], addOptions)).outcomes[0];
      if (outcome?.kind !== 'accepted') throw new Error(`the add was not accepted: ${JSON.stringify(outcome)}`);
      return { ...outcome, memoryNo: memoryNoOf(outcome.id) };
    },
    runBatch: (size = 64) => runBatch(batch, size),
    askQuestions: ({ alone = false, signal } = {}) => runNextQuestions(batch, { alone }, signal),
    readDocument: (signal) => runNextDocument(batch, { alone: false, onClaimed: () => {} }, signal),
    async drain(size = 64) {
      let total = 0;
      for (;;) {
        if (await runNextDocument(batch, { alone: false, onClaimed: () => {} })) {
          total += 1;
          continue;
        }
        const { claimed } = await runBatch(batch, size);
        if (claimed === 0) return total;
        total += claimed;
        if (total > 100_000) throw new Error('the ledger never empties');
      }
    },
    memoryNoOf,
    get: <T>(sql: string, ...parameters: unknown[]) => {
      const row = sqliteOf(store())
        .db.prepare(sql)
        .get(...parameters) as Record<string, unknown>;
      const values = Object.values(row);
      return (values.length === 1 ? values[0] : row) as T;
    },
    all: <T>(sql: string, ...parameters: unknown[]) =>
      sqliteOf(store())
        .db.prepare(sql)
        .all(...parameters) as T[],
    close,
    [Symbol.asyncDispose]: close,
  };
}

/**
 * Returns all rows of every ordinary table, those that hold the word index and the vector index included.
 * @param leftOut names of tables to leave out
 */
export function dumpTables(store: SqliteStore, leftOut: readonly string[] = []): Record<string, unknown[]> {
  const tables = store.db
    .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name`)
    .pluck()
    .all() as string[];
  return Object.fromEntries(
    tables
      .filter((table) => !leftOut.includes(table))
      .map((table) => [
        table,
        store.db
          .prepare(`SELECT * FROM "${table}" ORDER BY 1, 2`)
          .raw()
          .all()
          .map((row) => (row as unknown[]).map((value) => (Buffer.isBuffer(value) ? value.toString('hex') : value))),
      ]),
  );
}

/**
 * Checks that every row that refers to a memory refers to one that exists, even where no foreign key requires it. Also
 * checks the integrity of the file and its indexes.
 */
export function expectNoOrphans(store: SqliteStore): void {
  const { db } = store;
  expect(db.pragma('foreign_key_check')).toEqual([]);
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  db.exec(`INSERT INTO memory_text (memory_text) VALUES ('integrity-check')`);
  const memories = new Set(db.prepare('SELECT seq FROM memories').pluck().all());
  const strangers = (sql: string, known: ReadonlySet<unknown>) =>
    db
      .prepare(sql)
      .pluck()
      .all()
      .filter((number) => !known.has(number));
  for (const sql of [
    'SELECT seq FROM memory_dynamics',
    'SELECT memory FROM memory_revisions',
    'SELECT memory FROM vectors',
    'SELECT src FROM edges',
    'SELECT dst FROM edges',
    'SELECT live_end FROM chains',
    'SELECT memory FROM entity_mentions',
    'SELECT memory FROM entity_relations',
    'SELECT memory FROM jobs WHERE memory IS NOT NULL',
    'SELECT rowid FROM memory_text',
  ]) {
    expect(strangers(sql, memories), sql).toEqual([]);
  }
  const textless = strangers(
    'SELECT seq FROM memories',
    new Set(db.prepare('SELECT rowid FROM memory_text').pluck().all()),
  );
  expect(textless, 'memories without words').toEqual([]);
  const miscounted = db
    .prepare(
      `SELECT e.name, e.mentions, count(em.memory) AS counted
       FROM entities e LEFT JOIN entity_mentions em ON em.entity_no = e.entity_no
       GROUP BY e.entity_no HAVING counted = 0 OR counted <> e.mentions`,
    )
    .all();
  expect(miscounted, 'entities nobody mentions, or not as often as they are counted').toEqual([]);
  const unmentioned = db
    .prepare(
      `SELECT r.* FROM entity_relations r WHERE 2 <> (
         SELECT count(*) FROM entity_mentions em WHERE em.memory = r.memory AND em.entity_no IN (r.src, r.dst))`,
    )
    .all();
  expect(unmentioned, 'relations between what their memory does not mention').toEqual([]);
  const identities = (table: string) =>
    db
      .prepare(
        `SELECT vector_no, model_no, memory, user_no, role FROM ${table}
         WHERE model_no IN (SELECT model_no FROM models WHERE encoding = 'float32') ORDER BY vector_no`,
      )
      .all();
  expect(identities('vector_codes'), 'codes of vectors').toEqual(identities('vectors'));
  const inParts = db.prepare('SELECT DISTINCT part_no / 32 AS no FROM vector_parts ORDER BY no').all();
  const apart = db.prepare('SELECT vector_no AS no FROM vectors WHERE precision <> 0 ORDER BY no').all();
  expect(inParts, 'vectors with parts').toEqual(apart);
  const foreign = db
    .prepare('SELECT vector_no FROM vectors v JOIN memories m ON m.seq = v.memory WHERE m.user_no <> v.user_no')
    .all();
  expect(foreign, 'vectors of another user than their memory').toEqual([]);
}

/**
 * Returns the ids of the memories that the word index finds by this word: in any of its columns, or with `column` only
 * in the memory's own text (`content`) or in the texts before it in its session (`context`).
 */
export function idsWithWord(fixture: TestEngine, word: string, column?: 'content' | 'context'): string[] {
  const match = column === undefined ? `"${word}"` : `${column} : "${word}"`;
  return fixture
    .all<{ id: string }>(
      'SELECT m.id FROM memory_text t JOIN memories m ON m.seq = t.rowid WHERE memory_text MATCH ? ORDER BY m.seq',
      match,
    )
    .map(({ id }) => id);
}
