/**
 * Measures how each figure grows with the number of memories:
 *
 *     npm run bench -- [--sizes 10000,100000,1000000] [--folder PATH] [--embeddings none]
 *
 * With `--peers` it measures Cairn beside other systems instead (peers/main.ts).
 *
 * One file grows from size to size. Nearly all of it belongs to one user, the worst case. Every hundredth memory
 * belongs to one of a hundred small users, who have 100 memories each at a million, spread over the whole file. The
 * texts come from natural-text.ts. Adds and their background work run one after the other in this process, on one core,
 * so that they can be told apart; `service.ts` and `queues.ts` measure the processes that users run. The baseline is a
 * file with the same texts in plain FTS5 and their sign bits in plain vec0, in the same run. Prints one JSON line per
 * figure. With `--folder` the file is kept, and a later run resumes there.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import Database from 'better-sqlite3';
import * as sqliteVec from 'sqlite-vec';
import { v7 as uuidv7 } from 'uuid';
import { startProgress } from '../src/cli/progress.ts';
import { readConfig } from '../src/engine/config.ts';
import { calibrateScores } from '../src/engine/upkeep/calibrate-scores.ts';
import { checkpoint } from '../src/engine/upkeep/checkpoint.ts';
import { decayMemories } from '../src/engine/upkeep/decay-memories.ts';
import { runBatch } from '../src/engine/batches/run-batch.ts';
import { createMetrics } from '../src/engine/metrics.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { openParts } from '../src/engine/parts/engine-parts.ts';
import { silentLogger, systemClock } from '../src/engine/ports.ts';
import { createRandom } from '../src/engine/random.ts';
import { signBits } from '../src/engine/store/vector-encoding.ts';
import { ftsString, indexableText, queryTerms } from '../src/engine/text/index-text.ts';
import { newMemory } from '../test/support/new-memory.ts';
import { startRedisServer } from '../test/support/redis.ts';
import { anonymousMb, askQuestions, createQuestions, reportLatencies, residentMb, startProcess } from './load.ts';
import { createTextSource } from './natural-text.ts';
import { readArguments } from './read-arguments.ts';
import { report } from './report.ts';
import { sqliteOf } from '../test/support/sqlite-of.ts';

const USER = 'bench';
const SMALL_USERS = 100;
const SMALL_USER_EVERY = 100;
const MANY_USERS = 500;
const ADD_BATCH = 100;
const WORK_BATCH = 256;
/** Number of memories that are added before their jobs run: few enough that the ledger stays short. */
const ROUND = 5_000;
/** Number of jobs that two workers share; they read their indexes while the first of these jobs run. */
const SHARED_WORK = 20_000;
/** Interval at which the remaining jobs are counted, ms; each count reads one index row per job. */
const LOOK_MS = 200;
const QUERIES = 500;
const QUERY_BLOCK = 50;
const WARM_UP = 100;
const READ_BYTES = 1_048_576;
/** Time after which a started process has returned the memory of loading, ms. */
const SETTLED_MS = 6_000;
/** Questions of common words only, which are the slowest ones. */
const COMMON_QUESTIONS = ['what is the one that it was for', 'how and when is a memory read', 'the job of the file'];

async function main(): Promise<void> {
  if (process.argv.includes('--peers')) return void (await import('./peers/main.ts'));
  const { values } = readArguments(
    'npm run bench -- [--sizes 10000,100000] [--folder PATH] [--embeddings none] [--peers …]',
    {
      sizes: { type: 'string', default: '10000,100000' },
      folder: { type: 'string' },
      embeddings: { type: 'string', default: 'synthetic' },
    },
    ({ positionals, values: { sizes } }) => positionals.length === 0 && /^[1-9]\d{0,8}(?:,[1-9]\d{0,8})*$/.test(sizes),
  );
  const folder = values.folder ?? fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-scale-'));
  fs.mkdirSync(folder, { recursive: true });
  const settings = {
    OM_DB_PATH: path.join(folder, 'scale.sqlite'),
    OM_PORT: '0',
    OM_LOG_LEVEL: 'info',
    OM_EMBEDDINGS: values.embeddings,
  };
  try {
    for (const size of values.sizes.split(',').map(Number)) {
      await grow(settings, size);
      await measureInProcess(settings, size);
      await measureProcess(settings, size);
      await measureManyUsers(settings, size);
      await measureTwoWorkers(settings, size);
    }
  } finally {
    if (values.folder === undefined) fs.rmSync(folder, { recursive: true });
  }
}

type Settings = Readonly<Record<string, string>> & { readonly OM_DB_PATH: string };

/** Adds memories up to `size` and runs their jobs. Reports the speed of the last tenth. */
async function grow(settings: Settings, size: number): Promise<void> {
  const work = await openWork(settings);
  const floor = openFloor(settings);
  const progress = startProgress(`memories to ${size}`, size);
  const spent = { accepting: 0, finishing: 0, floor: 0, count: 0 };
  const batchMs: number[] = [];
  const measuredFrom = size - Math.max(ROUND, size / 10);
  for (let at = work.count(); at < size;) {
    const items = textsFrom(at, Math.min(ROUND, size - at));
    let begun = performance.now();
    for (let first = 0; first < items.length; first += ADD_BATCH) {
      const batchBegun = performance.now();
      await work.add(items.slice(first, first + ADD_BATCH));
      batchMs.push(performance.now() - batchBegun);
    }
    const acceptingMs = performance.now() - begun;
    begun = performance.now();
    await work.finish();
    const finishingMs = performance.now() - begun;
    begun = performance.now();
    await floor.add(items.map(({ content }) => content));
    const floorMs = performance.now() - begun;
    if (at >= measuredFrom) {
      spent.accepting += acceptingMs;
      spent.finishing += finishingMs;
      spent.floor += floorMs;
      spent.count += items.length;
    }
    at += items.length;
    progress.update(at, `${Math.round((items.length / (acceptingMs + finishingMs)) * 1000)} a second`);
  }
  progress.stop();
  if (spent.count > 0) {
    const perSecond = (ms: number) => (spent.count / ms) * 1000;
    report('accepted_in_batches_per_s_of_one_core', perSecond(spent.accepting), { size });
    reportLatencies('commit_of_100_adds_p95_ms', batchMs, { size, longest: Math.max(...batchMs) });
    report('worked_off_per_s_of_one_core', perSecond(spent.finishing), { size });
    report('floor_fts5_and_vec0_inserts_per_s', perSecond(spent.floor), { size });
    work.calibrate();
  }
  floor.close();
  await work.close();
}

interface Item {
  readonly userId: string;
  readonly sessionId: string;
  readonly content: string;
}

/** Texts by position; every run gets the same ones. */
function textsFrom(first: number, count: number): Item[] {
  const source = createTextSource(first + 11);
  const random = createRandom(first + 13);
  return Array.from({ length: count }, (_, place) => {
    const at = first + place;
    const isSmall = at % SMALL_USER_EVERY === 0;
    return {
      userId: isSmall ? `small-${(at / SMALL_USER_EVERY) % SMALL_USERS}` : USER,
      sessionId: `s${Math.floor(at / 20)}`,
      content: source.text(60 + Math.floor(160 * random())),
    };
  });
}

async function openWork(settings: Settings) {
  const config = readConfig({ ...settings });
  const metrics = createMetrics();
  const engine = await openEngine({ config, metrics, writer: 'inline' });
  const parts = openParts({ config, clock: systemClock, metrics, role: 'worker', onCall: () => {} });
  const tenant = await engine.tenant('default');
  const context = {
    open: () => parts.pool.get(settings.OM_DB_PATH),
    config,
    clock: systemClock,
    metrics,
    logger: silentLogger,
    embedder: parts.embedder,
    gatherer: parts.gatherer,
    sourceOf: parts.sourceOf,
    languageModel: null,
    documentParser: null,
    pageFetcher: null,
    newId: uuidv7,
    owner: 'bench',
  };
  return {
    tenant,
    context,
    embedder: parts.embedder,
    count: () => (context.open().store.prepare('SELECT count(*) AS n FROM memories').get() as { n: number }).n,
    async add(items: readonly Item[]): Promise<void> {
      await tenant.addMemories(items.map((item) => newMemory(item)));
    },
    async finish(): Promise<void> {
      while ((await runBatch(context, WORK_BATCH)).claimed > 0) checkpoint(context);
    },
    calibrate: () => calibrateScores(context),
    async close(): Promise<void> {
      sqliteOf(context.open().store).db.pragma('wal_checkpoint(TRUNCATE)');
      await engine.close();
      parts.pool.close();
      parts.budget.close();
    },
  };
}

/** Opens the baseline, the simplest store that could answer: one column of FTS5 and a table of sign bits. */
function openFloor(settings: Settings) {
  const db = new Database(path.join(path.dirname(settings.OM_DB_PATH), 'floor.sqlite'));
  sqliteVec.load(db);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = NORMAL');
  db.pragma('mmap_size = 268435456');
  db.exec(`CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5
    (content, content = '', tokenize = 'porter unicode61 remove_diacritics 2');
    CREATE VIRTUAL TABLE IF NOT EXISTS bits USING vec0(embedding bit[768])`);
  const insertWords = db.prepare('INSERT INTO words (content) VALUES (?)');
  const insertBits = db.prepare('INSERT INTO bits (embedding) VALUES (vec_bit(?))');
  const words = db.prepare('SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 10');
  const nearest = db.prepare('SELECT rowid FROM bits WHERE embedding MATCH vec_bit(?) AND k = 10');
  const random = createRandom(17);
  return {
    /** Adds texts with random bits, which take as long as real ones. */
    async add(texts: readonly string[]): Promise<void> {
      db.transaction(() => {
        for (const text of texts) {
          insertWords.run(indexableText(text));
          insertBits.run(Buffer.from(Array.from({ length: 96 }, () => Math.floor(256 * random()))));
        }
      })();
    },
    ask(query: string, embedding: Float32Array | undefined): void {
      const terms = queryTerms(query).words;
      if (terms.length > 0) words.all(terms.map(ftsString).join(' OR '));
      if (embedding !== undefined) nearest.all(signBits(embedding));
    },
    close: () => void db.close(),
  };
}

async function measureInProcess(settings: Settings, size: number): Promise<void> {
  const { tenant, context, embedder, close } = await openWork(settings);
  const floor = openFloor(settings);
  const ask = async (query: string, userId: string) => {
    // Occasional work, such as mapping a file that no process writes to, gets its turn as in a service.
    await nextTurn();
    const begun = performance.now();
    await tenant.query({ query, k: 10, filter: { userIds: [userId] }, reinforce: false });
    return performance.now() - begun;
  };
  const nextQuestion = createQuestions();
  readThrough(settings.OM_DB_PATH);
  for (let count = 0; count < WARM_UP; count++) await ask(nextQuestion(), USER);
  await pause(SETTLED_MS);
  for (let count = 0; count < WARM_UP; count++) await ask(nextQuestion(), `small-${count % SMALL_USERS}`);
  const latencies = {
    everything: [] as number[],
    small: [] as number[],
    smallWithNewWords: [] as number[],
    common: [] as number[],
    floor: [] as number[],
  };
  // In turn, so that all meet the same machine, and in blocks: the floor's scan throws out of the caches what the next
  // query needs.
  for (let asked = 0; asked < QUERIES; asked += QUERY_BLOCK) {
    const questions = Array.from({ length: QUERY_BLOCK }, nextQuestion);
    readThrough(settings.OM_DB_PATH);
    for (const query of questions) latencies.everything.push(await ask(query, USER));
    for (const [count, query] of questions.entries())
      latencies.small.push(await ask(query, `small-${(asked + count) % SMALL_USERS}`));
    for (let count = 0; count < QUERY_BLOCK; count++)
      latencies.smallWithNewWords.push(await ask(nextQuestion(), `small-${(asked + count) % SMALL_USERS}`));
    for (let count = 0; count < QUERY_BLOCK / 10; count++)
      latencies.common.push(await ask(COMMON_QUESTIONS[count % 3]!, USER));
    for (const query of questions) {
      const [embedding] = (await embedder?.embed([query], { purpose: 'query' })) ?? [];
      const begun = performance.now();
      floor.ask(query, embedding);
      latencies.floor.push(performance.now() - begun);
    }
  }
  reportLatencies('query_in_process_p95_ms', latencies.everything, { size });
  reportLatencies('query_of_a_small_user_p95_ms', latencies.small, { size });
  reportLatencies('query_of_a_small_user_with_new_words_p95_ms', latencies.smallWithNewWords, { size });
  reportLatencies('query_of_common_words_p95_ms', latencies.common, { size });
  reportLatencies('floor_fts5_and_vec0_p95_ms', latencies.floor, { size });
  const begun = performance.now();
  const changed = await decayMemories(context);
  report('decay_ms', performance.now() - begun, { size, changed });
  const bytes = bytesBeyondText(settings, sqliteOf(context.open().store).db);
  report('bytes_beyond_text_per_memory', bytes.all, { size });
  report('bytes_settled_per_memory', bytes.settled, { size });
  floor.close();
  await close();
}

/**
 * Reads the whole file, so that questions are measured with the file in memory: some systems drop pages that were not
 * read for a minute or two.
 */
function readThrough(file: string): void {
  const descriptor = fs.openSync(file, 'r');
  const buffer = Buffer.alloc(READ_BYTES);
  while (fs.readSync(descriptor, buffer) > 0);
  fs.closeSync(descriptor);
}

/**
 * Bytes of the file per memory, without its text. `settled` also leaves out the rows of finished jobs, whose pages are
 * reused after OM_JOB_RETENTION_HOURS.
 */
function bytesBeyondText({ OM_DB_PATH }: Settings, db: Database.Database): { all: number; settled: number } {
  const { texts, memories } = db
    .prepare('SELECT sum(octet_length(content)) AS texts, count(*) AS memories FROM memories')
    .get() as { texts: number; memories: number };
  const jobs = db
    .prepare(`SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE tbl_name = 'jobs')`)
    .pluck()
    .get() as number;
  const beyondText = fs.statSync(OM_DB_PATH).size - texts;
  return { all: beyondText / memories, settled: (beyondText - jobs) / memories };
}

/** Measures new memories of many users in the same file, in contrast to the worst case of one user. */
async function measureManyUsers(settings: Settings, size: number): Promise<void> {
  const work = await openWork(settings);
  const items = textsFrom(work.count(), ROUND).map((item, at) => ({
    ...item,
    userId: `one of many ${at % MANY_USERS}`,
  }));
  for (let first = 0; first < items.length; first += ADD_BATCH) await work.add(items.slice(first, first + ADD_BATCH));
  const begun = performance.now();
  await work.finish();
  report('worked_off_of_many_users_per_s_of_one_core', (1000 * items.length) / (performance.now() - begun), { size });
  await work.close();
}

/** Measures two worker processes that share the jobs of one user, on a machine with two cores. */
async function measureTwoWorkers(settings: Settings, size: number): Promise<void> {
  const redis = await startRedisServer({ options: ['--appendfsync', 'everysec'] });
  if (redis === undefined) {
    process.stderr.write('two workers are not measured: there is no redis-server on the PATH\n');
    return;
  }
  const work = await openWork(settings);
  const items = textsFrom(work.count(), SHARED_WORK).map((item) => ({ ...item, userId: USER }));
  for (let first = 0; first < items.length; first += ADD_BATCH) await work.add(items.slice(first, first + ADD_BATCH));
  const waiting = sqliteOf(work.context.open().store)
    .db.prepare(`SELECT count(*) FROM jobs WHERE state IN ('queued', 'active', 'failed')`)
    .pluck();
  const workers = await Promise.all([1, 2].map(() => startProcess('worker', { ...settings, REDIS_URL: redis.url })));
  try {
    // Measuring begins when both workers have read their index.
    while ((waiting.get() as number) > 0.8 * items.length) await pause(LOOK_MS);
    const [begun, left] = [performance.now(), waiting.get() as number];
    while ((waiting.get() as number) > 0) await pause(LOOK_MS);
    report('worked_off_per_s_of_two_workers', (1000 * left) / (performance.now() - begun), { size });
  } finally {
    for (const worker of workers) await worker.stop();
    await work.close();
    await redis.stop();
  }
}

/** Measures the process that users run: its start time, and its memory before and after questions. */
async function measureProcess(settings: Settings, size: number): Promise<void> {
  readThrough(settings.OM_DB_PATH);
  const service = await startProcess('serve', settings);
  try {
    report('start_to_ready_ms', service.startMs, { size });
    await pause(SETTLED_MS);
    report('rss_after_start_mb', residentMb(service.child), { size });
    reportLatencies('query_http_p95_ms', await askQuestions(service.url, (asked) => asked < QUERIES), { size });
    report('rss_after_queries_mb', residentMb(service.child), { size, own: anonymousMb(service.child) });
    await pause(SETTLED_MS);
    report('rss_when_quiet_again_mb', residentMb(service.child), { size });
  } finally {
    await service.stop();
  }
}

await main();
