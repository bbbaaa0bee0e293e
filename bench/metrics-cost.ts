/**
 * Cost of metrics: `npm run measure -- metrics-cost [MEMORIES]`. Two engines over one file, one of which observes
 * nothing, answer the same questions in turn; CPU time is compared, because other processes affect it least. A scrape
 * is measured too: it counts the file and must not block the thread that serves requests. Prints one JSON line per
 * figure.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { readConfig } from '../src/engine/config.ts';
import { createMetrics, observeStages, type Metrics } from '../src/engine/metrics.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { openTenant } from '../src/engine/tenant-file/open-tenant.ts';
import { putWaypoint } from '../src/engine/store/edges.ts';
import { insertJob } from '../src/engine/store/jobs.ts';
import { seedMemories } from '../test/support/seed-store.ts';
import { createQuestions, createTexts } from './load.ts';
import { percentile, report } from './report.ts';
import { sqliteOf } from '../test/support/sqlite-of.ts';

const MEMORIES = Number(process.argv[2] ?? 100_000);
const ROUNDS = 60;
const QUESTIONS = 25;
const SEEDED_AT_ONCE = 1_000;
const SCRAPES = 8;
/** Pause between two scrapes, ms: longer than the pause after a census of a file of this size. */
const BETWEEN_SCRAPES_MS = 6_000;
/** Pause before and after a scrape, ms, so that the delay of the event loop can be measured. */
const BEATS_MS = 30;
/** Number of observations that are timed. */
const OBSERVATIONS = 200_000;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
const config = readConfig({ OM_DB_PATH: path.join(folder, 'bench.sqlite'), OM_VEC_DIM: '256' });
try {
  await seed();
  const queryMs = await measureQueries();
  measureObservation(queryMs);
  await measureScrapes();
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}

/** Stores finished memories with words, vectors and waypoints; half of them have a waiting job. */
async function seed(): Promise<void> {
  const engine = await openEngine({ config, writer: 'inline' });
  const { embedder } = engine;
  const { store, indexes, close } = openTenant(config.paths.defaultTenant, {
    role: 'worker',
    identity: embedder,
    now: Date.now(),
  });
  const index = [...indexes.values()][0] ?? null;
  const texts = createTexts(MEMORIES);
  for (let at = 0; at < MEMORIES; at += SEEDED_AT_ONCE) {
    const memories = texts.slice(at, at + SEEDED_AT_ONCE).map((content) => ({ content, userId: 'bench' }));
    const seeded = await seedMemories(store, memories, Date.now(), embedder === null ? undefined : { embedder, index });
    store.write(() => {
      for (const [place, { memoryNo, id }] of seeded.entries()) {
        if (place > 0)
          putWaypoint(store, { src: memoryNo, dst: seeded[place - 1]!.memoryNo, similarity: 0.5 }, Date.now());
        if (place % 2 === 0) insertJob(store, { id, memory: memoryNo, step: 'encode', bulk: true, now: Date.now() });
      }
    });
  }
  sqliteOf(store).db.pragma('wal_checkpoint(TRUNCATE)');
  close();
  await engine.close();
}

/** Measures queries. Returns the CPU time of one query, ms. */
async function measureQueries(): Promise<number> {
  const watched = await openEngine({ config, metrics: createMetrics(), writer: 'inline' });
  const unwatched = await openEngine({ config, metrics: silenced(createMetrics()), writer: 'inline' });
  const nextQuestion = createQuestions();
  const cpuMs = async (engine: typeof watched, questions: readonly string[]): Promise<number> => {
    const tenant = await engine.tenant('default');
    const before = process.cpuUsage();
    for (const query of questions)
      await tenant.query({ query, k: 10, filter: { userIds: ['bench'] }, reinforce: false });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000 / questions.length;
  };
  const times = { watched: [] as number[], unwatched: [] as number[] };
  const ratios: number[] = [];
  for (let round = -2; round < ROUNDS; round++) {
    const questions = Array.from({ length: QUESTIONS }, nextQuestion);
    const order = round % 2 === 0 ? [watched, unwatched] : [unwatched, watched];
    // The first engine reads pages from disk that the second then finds in memory.
    for (const engine of order) await cpuMs(engine, questions);
    const first = await cpuMs(order[0]!, questions);
    const second = await cpuMs(order[1]!, questions);
    if (round < 0) continue;
    const [on, off] = order[0] === watched ? [first, second] : [second, first];
    times.watched.push(on);
    times.unwatched.push(off);
    ratios.push(on / off);
  }
  const [on, off] = [percentile(times.watched, 0.5), percentile(times.unwatched, 0.5)];
  const more = { memories: MEMORIES, rounds: ROUNDS };
  report('query_cpu_ms_observed', on, more);
  report('query_cpu_ms_unobserved', off, more);
  report('observation_percent_of_query', 100 * (percentile(ratios, 0.5) - 1), {
    p25: 100 * (percentile(ratios, 0.25) - 1),
    p75: 100 * (percentile(ratios, 0.75) - 1),
  });
  await Promise.all([watched.close(), unwatched.close()]);
  return off;
}

/**
 * The observations of one query by themselves, which a busy machine cannot hide: the engine's and those of its request.
 */
function measureObservation(queryMs: number): void {
  const metrics = createMetrics();
  const stages = 'embed plan lexical dense fuse expand entities score resolve rerank calibrate floor pack'.split(' ');
  const trace = stages.map((stage) => ({ stage, ms: 0.1, in: 10, out: 10 }));
  const before = process.cpuUsage();
  for (let count = 0; count < OBSERVATIONS; count++) {
    observeStages(metrics, trace);
    metrics.queryDuration.observe(0.003);
    metrics.queriesByProfile.inc({ profile: 'composite' });
    metrics.queryHits.observe(10);
    metrics.httpInFlight.inc();
    metrics.httpInFlight.dec();
    metrics.httpRequests.inc({ route: '/memory/query' });
    metrics.httpResponses.inc({ status: 200 });
    metrics.httpDurations.observe({ kind: 'query' }, 0.003);
  }
  const { user, system } = process.cpuUsage(before);
  const us = (user + system) / OBSERVATIONS;
  report('observation_us_per_query', us, { percent_of_query: us / 10 / queryMs });
}

/** Replaces all metrics by functions that record nothing. */
function silenced(metrics: Metrics): Metrics {
  for (const metric of Object.values(metrics)) {
    for (const verb of ['inc', 'dec', 'observe', 'set'])
      if (typeof metric === 'object' && verb in metric) Object.assign(metric, { [verb]: () => {} });
  }
  return metrics;
}

/** Measures the time of a scrape, and the longest time that it blocks the thread. */
async function measureScrapes(): Promise<void> {
  const metrics = createMetrics();
  const engine = await openEngine({ config, metrics, writer: 'inline' });
  const took: number[] = [];
  const held: number[] = [];
  const delays = monitorEventLoopDelay({ resolution: 1 });
  const touch = new Date(Date.now() - 3_600_000);
  for (let scrape = 0; scrape < SCRAPES; scrape++) {
    // The file's time is changed as by a write, since a file that has not changed is not counted again.
    fs.utimesSync(config.paths.defaultTenant, touch, new Date(touch.getTime() + scrape * 1_000));
    await pause(BETWEEN_SCRAPES_MS);
    delays.enable();
    await pause(BEATS_MS);
    delays.reset();
    const begun = performance.now();
    await metrics.registry.metrics();
    took.push(performance.now() - begun);
    await pause(BEATS_MS);
    delays.disable();
    held.push(delays.max / 1e6);
  }
  await engine.close();
  const { sum = 0, count = 1 } = Object.fromEntries(
    (await metrics.censusDurations.get()).values.map(({ metricName = '', value }) => [
      metricName.split('_').at(-1),
      value,
    ]),
  ) as { sum?: number; count?: number };
  report('scrape_ms', percentile(took, 0.5), { max: Math.max(...took), memories: MEMORIES });
  report('scrape_census_cpu_ms', (1_000 * sum) / count, { censuses: count });
  report('scrape_longest_hold_ms', percentile(held, 0.5), { max: Math.max(...held) });
}
