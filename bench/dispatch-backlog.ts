/**
 * What the dispatcher costs questions while jobs wait, in PostgreSQL: `npm run measure -- dispatch-backlog [TENANTS]`
 * (1,000 unless stated). Each tenant has 20 memories that no worker encodes. Small users ask first beside no dispatcher
 * and then beside one, in the threads of `npm start`. Reports one JSON line for each: the times of a question, how long
 * the main thread did not come back to its event loop, and the round trips for which that thread waited. Needs the
 * programs of PostgreSQL, as the tests do.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { readConfig } from '../src/engine/config.ts';
import type { Engine } from '../src/engine/engine.ts';
import { createMetrics, type Metrics } from '../src/engine/metrics.ts';
import { openEngine, type OpenEngineOptions } from '../src/engine/open-engine.ts';
import type { JobDispatcher } from '../src/engine/ports.ts';
import { tripTotals } from '../src/engine/store/postgres/connection-channel.ts';
import { newMemory } from '../test/support/new-memory.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { createQuestions, createTexts, reportLatencies } from './load.ts';
import { report } from './report.ts';

const TENANTS = Number(process.argv[2] ?? 1_000);
/** Number of memories of each tenant, each with an unfinished job. */
const OF_EACH = 20;
const [QUERIES, WARM_UP] = [500, 50];
/** Time that a dispatcher has to find the work of all tenants before questions are asked (ms). */
const SETTLES_MS = 10_000;

const SILENT = { dispatch() {}, close: async () => {} };
const names = Array.from({ length: TENANTS }, (_, n) => `t${n}`);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const found = await startPostgres();
if (found === undefined) throw new Error('there is no PostgreSQL: install Debian’s package postgresql');
const server = found;
try {
  const url = await server.createSchema();
  await withEngine(url, { writer: 'inline', dispatcher: SILENT }, fill);
  await withEngine(url, { writer: 'thread', dispatcher: SILENT }, (engine) => measure('without_dispatcher', engine));
  await withEngine(url, { writer: 'thread' }, (engine, metrics) => measure('beside_dispatcher', engine, metrics));
} finally {
  server.stop();
  fs.rmSync(folder, { recursive: true, force: true });
}

async function withEngine(
  url: string,
  options: Pick<OpenEngineOptions, 'writer'> & { readonly dispatcher?: JobDispatcher },
  work: (engine: Engine, metrics: Metrics) => Promise<void>,
): Promise<void> {
  const config = readConfig({
    OM_DATABASE_URL: url,
    OM_DB_PATH: path.join(folder, 'cairn.sqlite'),
    OM_RECALL_DAYS: '0',
  });
  const metrics = createMetrics();
  const engine = await openEngine({ config, metrics, ...options });
  try {
    await work(engine, metrics);
  } finally {
    await engine.close();
  }
}

async function fill(engine: Engine): Promise<void> {
  const texts = createTexts(OF_EACH, 5);
  for (const name of names) {
    engine.control.createTenant(name);
    await (await engine.tenant(name)).addMemories(texts.map((content) => newMemory({ content, userId: 'ana' })));
  }
}

async function measure(figure: string, engine: Engine, metrics?: Metrics): Promise<void> {
  const nextQuestion = createQuestions();
  let asked = 0;
  const askAnother = async () => {
    const tenant = await engine.tenant(names[(asked++ * 37) % TENANTS]!);
    await tenant.query({ query: nextQuestion(), k: 10, filter: { userIds: ['ana'] } });
  };
  for (let n = 0; n < WARM_UP; n += 1) await askAnother();
  await pause(SETTLES_MS);
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const [before, begunAt, used] = [tripTotals(), performance.now(), performance.eventLoopUtilization()];
  const latencies: number[] = [];
  for (let n = 0; n < QUERIES; n += 1) {
    const askedAt = performance.now();
    await askAnother();
    latencies.push(performance.now() - askedAt);
  }
  delays.disable();
  const seconds = (performance.now() - begunAt) / 1_000;
  const after = tripTotals();
  reportLatencies(`${figure}_query_ms`, latencies);
  report(`${figure}_main_thread`, (after.trips - before.trips) / QUERIES, {
    unit: 'round trips a query',
    trips_a_second: (after.trips - before.trips) / seconds,
    statements_a_second: (after.statements - before.statements) / seconds,
    busy_share: performance.eventLoopUtilization(used).utilization,
    delay_p99_ms: delays.percentile(99) / 1e6,
    delay_max_ms: delays.max / 1e6,
  });
  if (metrics === undefined) return;
  const { values } = await metrics.dispatchedRows.get();
  report(
    `${figure}_handed_out`,
    values.reduce((sum, { value }) => sum + value, 0),
  );
}
