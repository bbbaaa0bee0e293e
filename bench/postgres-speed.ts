/**
 * Speed of Cairn in PostgreSQL beside bare PostgreSQL in the same run: `npm run measure -- postgres-speed [MEMORIES]`
 * (100,000 unless stated). It moves a filled file into a server of its own, and reports one JSON line for each figure:
 * bare inserts of many rows and accepted adds, both in commits of 100 rows; memories that one worker, and two workers
 * together, encode and link; the first query of a process, and further ones, of the only user of that tenant, with the
 * server's CPU time; and queries of small users of many tenants. Needs the programs of PostgreSQL, as the tests do, and
 * Linux.
 */
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import type { BatchContext } from '../src/engine/batches/batch-context.ts';
import { runBatch } from '../src/engine/batches/run-batch.ts';
import { readConfig, type Config } from '../src/engine/config.ts';
import type { Tenant } from '../src/engine/engine.ts';
import { createMetrics } from '../src/engine/metrics.ts';
import { move } from '../src/engine/move/move-folder.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { openParts } from '../src/engine/parts/engine-parts.ts';
import { silentLogger, systemClock } from '../src/engine/ports.ts';
import { newMemory } from '../test/support/new-memory.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { fillFile } from './filled-file.ts';
import { createQuestions, createTexts, reportLatencies } from './load.ts';
import { report } from './report.ts';
import type { StepWorkerData } from './step-worker.ts';

const MEMORIES = Math.max(1_000, Number(process.argv[2] ?? 100_000));
/** Rows of a commit, and rows that are added and then worked off. */
const [GROUP, ADDED] = [100, 5_000];
const [QUERIES, WARM_UP] = [300, 30];
/** Number of small tenants, and of memories of each. */
const [TENANTS, OF_EACH] = [1_000, 20];

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const found = await startPostgres();
if (found === undefined) throw new Error('there is no PostgreSQL: install Debian’s package postgresql');
const server = found;
try {
  await measureBareInserts(await server.createSchema());
  const url = await fill(await server.createSchema());
  await measureOneUser(url);
  await measureSmallUsers(url);
} finally {
  server.stop();
  fs.rmSync(folder, { recursive: true, force: true });
}

/** A table with the columns and keys that a memory cannot do without, and a commit for each 100 rows. */
async function measureBareInserts(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(
    `CREATE TABLE bare (tenant int, seq int8, id text UNIQUE, user_no int8, at int8, content text,
       PRIMARY KEY (tenant, seq))`,
  );
  const texts = createTexts(ADDED);
  const begunAt = performance.now();
  for (let at = 0; at < texts.length; at += GROUP) {
    const group = texts.slice(at, at + GROUP);
    const places = group.map((_, n) => at + n);
    await client.query({
      name: 'insert',
      text: 'INSERT INTO bare SELECT 1, * FROM unnest($1::int8[], $2::text[], $3::int8[], $4::int8[], $5::text[])',
      values: [places, group.map(() => uuidv7()), places.map(() => 1), places.map(() => Date.now()), group],
    });
  }
  report('bare_inserted_a_second', (ADDED / (performance.now() - begunAt)) * 1_000);
  await client.end();
}

/** Fills a file and moves it into the database. Returns the address of the database. */
async function fill(url: string): Promise<string> {
  const file = path.join(folder, 'file', 'cairn.sqlite');
  fs.mkdirSync(path.dirname(file));
  await fillFile(file, MEMORIES);
  const begunAt = performance.now();
  await move({
    ...{ folder: readConfig({ OM_DB_PATH: file }), database: url, direction: 'into database', keepsSource: true },
    now: Date.now(),
    showProgress: () => ({ update() {}, stop() {} }),
  });
  report('moved_a_second', (MEMORIES / (performance.now() - begunAt)) * 1_000);
  const names = (await server.read(
    url,
    `SELECT quote_ident(relname) AS name FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`,
  )) as { name: string }[];
  for (const { name } of names) await server.read(url, `ANALYZE ${name}`);
  return url;
}

function settingsOf(url: string, name: string) {
  return { OM_DATABASE_URL: url, OM_DB_PATH: path.join(folder, name, 'cairn.sqlite'), OM_RECALL_DAYS: '0' };
}

function configOf(url: string, name: string): Config {
  fs.mkdirSync(path.join(folder, name));
  return readConfig(settingsOf(url, name));
}

async function measureOneUser(url: string): Promise<void> {
  const config = configOf(url, 'one');
  const engine = await openEngine({ config, writer: 'inline' });
  const tenant = await engine.tenant('default');
  const nextQuestion = createQuestions();
  const begunAt = performance.now();
  await ask(tenant, nextQuestion(), '');
  report('first_query_ms', performance.now() - begunAt);
  for (let n = 0; n < WARM_UP; n += 1) await ask(tenant, nextQuestion(), '');
  const before = await serverTime(url);
  const latencies = await timed(QUERIES, () => ask(tenant, nextQuestion(), ''));
  reportLatencies('query_ms', latencies, { server_cpu_ms: ((await serverTime(url)) - before) / QUERIES });
  const texts = createTexts(ADDED, 9);
  const adding = performance.now();
  for (let at = 0; at < ADDED; at += GROUP) {
    await tenant.addMemories(texts.slice(at, at + GROUP).map((content) => newMemory({ content })));
  }
  report('accepted_a_second', (ADDED / (performance.now() - adding)) * 1_000);
  const surroundings = { config, clock: systemClock, metrics: createMetrics(), logger: silentLogger };
  const parts = openParts({ ...surroundings, role: 'worker', onCall: () => {} });
  const open = () => parts.pool.get(config.paths.defaultTenant);
  const worker: BatchContext = { ...surroundings, ...parts, open, newId: uuidv7, owner: 'bench' };
  await runBatch(worker, GROUP); // Reads the codes of all memories.
  const [working, cpu, ofServer] = [performance.now(), process.cpuUsage(), await serverTime(url)];
  while ((await runBatch(worker, 256)).claimed > 0);
  const done = ADDED - GROUP;
  const { user, system } = process.cpuUsage(cpu);
  report('finished_a_second', (done / (performance.now() - working)) * 1_000, {
    client_cpu_us: (user + system) / done,
    server_cpu_us: (((await serverTime(url)) - ofServer) * 1_000) / done,
  });
  await Promise.all([parts.documentParser?.close(), parts.pageFetcher?.close()]);
  parts.pool.close();
  await measureTwoWorkers(url, tenant);
  await engine.close();
}

/** Lets two workers encode and link further memories together, each on a thread with a connection of its own. */
async function measureTwoWorkers(url: string, tenant: Tenant): Promise<void> {
  const texts = createTexts(ADDED, 10);
  for (let at = 0; at < ADDED; at += GROUP) {
    await tenant.addMemories(texts.slice(at, at + GROUP).map((content) => newMemory({ content })));
  }
  const workers = ['one', 'other'].map((owner) => {
    const workerData = { settings: settingsOf(url, 'one'), owner, warmUp: GROUP } satisfies StepWorkerData;
    return new Worker(new URL('./step-worker.ts', import.meta.url), { workerData });
  });
  const messages = () => Promise.all(workers.map(async (worker) => ((await once(worker, 'message')) as [number])[0]));
  await messages();
  const [working, cpu, ofServer] = [performance.now(), process.cpuUsage(), await serverTime(url)];
  const finished = messages();
  for (const worker of workers) worker.postMessage(null);
  const done = (await finished).reduce((sum, one) => sum + one, 0);
  const { user, system } = process.cpuUsage(cpu);
  report('finished_by_two_a_second', (done / (performance.now() - working)) * 1_000, {
    client_cpu_us: (user + system) / done,
    server_cpu_us: (((await serverTime(url)) - ofServer) * 1_000) / done,
  });
  const ends = workers.map((worker) => once(worker, 'exit'));
  for (const worker of workers) worker.postMessage(null);
  await Promise.all(ends);
}

async function measureSmallUsers(url: string): Promise<void> {
  const engine = await openEngine({ config: configOf(url, 'many'), writer: 'inline' });
  const texts = createTexts(OF_EACH, 5);
  const names = Array.from({ length: TENANTS }, (_, n) => `t${n}`);
  for (const name of names) {
    engine.control.createTenant(name);
    await (await engine.tenant(name)).addMemories(texts.map((content) => newMemory({ content, userId: 'ana' })));
  }
  const nextQuestion = createQuestions();
  let asked = 0;
  const askAnother = async () => ask(await engine.tenant(names[(asked++ * 37) % TENANTS]!), nextQuestion(), 'ana');
  for (let n = 0; n < WARM_UP; n += 1) await askAnother();
  reportLatencies('small_user_query_ms', await timed(QUERIES, askAnother));
  await engine.close();
}

async function ask(tenant: Tenant, query: string, userId: string): Promise<void> {
  await tenant.query({ query, k: 10, filter: { userIds: [userId] } });
}

async function timed(count: number, work: () => Promise<void>): Promise<number[]> {
  const latencies: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const begunAt = performance.now();
    await work();
    latencies.push(performance.now() - begunAt);
  }
  return latencies;
}

/** Adds up the CPU time of the server's processes for connections, ms, which /proc tells to the nanosecond. */
async function serverTime(url: string): Promise<number> {
  const rows = await server.read(
    url,
    `SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
  );
  const times = (rows as { pid: number }[]).map(({ pid }) =>
    Number.parseInt(fs.readFileSync(`/proc/${pid}/schedstat`, 'utf8'), 10),
  );
  return times.reduce((sum, time) => sum + time, 0) / 1e6;
}
