/**
 * Cost of a tenant in PostgreSQL: `npm run measure -- postgres-trips [MEMORIES]`. First it reports how long one round
 * trip takes, over a plain connection and with TLS. For each operation it then reports the
 * round trips to the database, the statements in them, and the CPU time (µs) of this process, the threads of its
 * connections included, and of the server's processes. The same operations in a file give the CPU time beside them.
 * Prints one JSON line per figure. Needs the programs of PostgreSQL, as the tests do, and Linux, whose /proc tells the
 * CPU time of the server.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import type { BatchContext } from '../src/engine/batches/batch-context.ts';
import { runBatch } from '../src/engine/batches/run-batch.ts';
import { readConfig } from '../src/engine/config.ts';
import { createMetrics } from '../src/engine/metrics.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { openParts } from '../src/engine/parts/engine-parts.ts';
import { silentLogger, systemClock } from '../src/engine/ports.ts';
import { openBlockingConnection } from '../src/engine/store/postgres/blocking-connection.ts';
import { tripTotals } from '../src/engine/store/postgres/connection-channel.ts';
import { newMemory } from '../test/support/new-memory.ts';
import { startPostgres, type PostgresServer } from '../test/support/postgres.ts';
import { createQuestions, createTexts, reportLatencies } from './load.ts';
import { report } from './report.ts';

const MEMORIES = Math.max(400, Number(process.argv[2] ?? 2_000));
/** Number of memories that the writer commits together in one group. */
const GROUP = 100;
const QUERIES = 100;
const ROUND_TRIPS = 2_000;
/** Length of a tick of the kernel's clock, in which /proc counts CPU time, µs. */
const TICK_US = 10_000;

/** What was used so far: round trips, statements, and CPU time (µs) of this process and of the server. */
interface Totals {
  readonly trips: number;
  readonly statements: number;
  readonly client: number;
  readonly server: number;
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const server = await startPostgres();
if (server === undefined) throw new Error('there is no PostgreSQL: install Debian’s package postgresql');
try {
  measureRoundTrips('plain', server.url);
  measureRoundTrips('tls', await server.encrypt());
  await measure('sqlite', {});
  await measure('postgres', { OM_DATABASE_URL: await server.createSchema() }, server);
} finally {
  server.stop();
  fs.rmSync(folder, { recursive: true, force: true });
}

/** Reports the latency of a statement that does nothing, and of one that takes the server some 0.2 ms. */
function measureRoundTrips(kind: string, url: string): void {
  const connection = openBlockingConnection(url);
  const statements = { nothing: 'SELECT 1', some_work: 'SELECT sum(n) FROM generate_series(1, 2000) n' };
  for (const [name, text] of Object.entries(statements)) {
    const ask = () => connection.query(text, [], name);
    for (let n = 0; n < ROUND_TRIPS; n += 1) ask();
    const before = process.cpuUsage();
    const latencies = Array.from({ length: ROUND_TRIPS }, () => {
      const begunAt = performance.now();
      ask();
      return performance.now() - begunAt;
    });
    const { user, system } = process.cpuUsage(before);
    reportLatencies(`round_trip_${kind}_${name}_ms`, latencies, { cpu_client_us: (user + system) / ROUND_TRIPS });
  }
  connection.close();
}

async function measure(store: string, settings: Readonly<Record<string, string>>, database?: PostgresServer) {
  const file = path.join(folder, store, 'cairn.sqlite');
  fs.mkdirSync(path.dirname(file));
  const config = readConfig({ ...settings, OM_DB_PATH: file, OM_RECALL_DAYS: '0' });
  const engine = await openEngine({ config, writer: 'inline' });
  const tenant = await engine.tenant('default');
  const surroundings = { config, clock: systemClock, metrics: createMetrics(), logger: silentLogger };
  const parts = openParts({ ...surroundings, role: 'worker', onCall: () => {} });
  const worker: BatchContext = {
    ...{ ...surroundings, ...parts, open: () => parts.pool.get(file), newId: uuidv7, owner: 'bench' },
  };
  const totals = async (): Promise<Totals> => {
    const { user, system } = process.cpuUsage();
    return { ...tripTotals(), client: user + system, server: database === undefined ? 0 : await serverTime(database) };
  };
  const timed = async (figure: string, count: number, work: () => Promise<unknown>) => {
    const [before, startedAt] = [await totals(), performance.now()];
    await work();
    const [after, elapsed] = [await totals(), performance.now() - startedAt];
    const each = (name: keyof Totals) => (after[name] - before[name]) / count;
    const cpu = { cpu_client_us: each('client'), cpu_server_us: each('server') };
    report(`${store}_${figure}`, each('trips'), {
      ...{ statements: each('statements'), ...cpu, wall_us: (elapsed / count) * 1_000 },
    });
  };
  const memories = createTexts(MEMORIES).map((content, n) =>
    newMemory({ content, userId: `user ${n % 7}`, sessionId: n % 2 === 0 ? '' : `s ${n % 14}`, tags: [`t ${n % 9}`] }),
  );
  const workOff = async () => {
    while ((await runBatch(worker, 256)).claimed > 0);
  };
  const addTogether = async (from: number, to: number) => {
    for (let at = from; at < to; at += GROUP) await tenant.addMemories(memories.slice(at, at + GROUP));
  };
  const addEach = async (from: number, to: number) => {
    for (let at = from; at < to; at += GROUP)
      await Promise.all(memories.slice(at, at + GROUP).map((memory) => tenant.addMemories([memory])));
  };
  // The first memories warm up.
  await addTogether(0, GROUP);
  await addEach(GROUP, 2 * GROUP);
  await workOff();
  const half = GROUP * Math.ceil(MEMORIES / 2 / GROUP);
  await timed('add_of_one_request', half - 2 * GROUP, () => addTogether(2 * GROUP, half));
  await timed('add_of_many_requests', MEMORIES - half, () => addEach(half, MEMORIES));
  await timed('encode_and_link', MEMORIES - 2 * GROUP, workOff);
  const nextQuestion = createQuestions();
  const ask = async (count: number) => {
    for (let n = 0; n < count; n += 1)
      await tenant.query({ query: nextQuestion(), k: 10, filter: { userIds: [`user ${n % 7}`] } });
  };
  await ask(20);
  await timed('query', QUERIES, () => ask(QUERIES));
  await engine.close();
  await Promise.all([parts.documentParser?.close(), parts.pageFetcher?.close()]);
  parts.pool.close();
}

/** Adds up the CPU time of the server's processes for connections, µs. */
async function serverTime({ read, url }: PostgresServer): Promise<number> {
  const rows = await read(
    url,
    `SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
  );
  const ticks = (rows as { pid: number }[]).map(({ pid }) => {
    const fields = fs
      .readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return Number(fields[11]) + Number(fields[12]);
  });
  return TICK_US * ticks.reduce((sum, one) => sum + one, 0);
}
