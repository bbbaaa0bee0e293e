import { execFileSync } from 'node:child_process';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { createMetrics, observeStages, type Metrics } from '../../src/engine/metrics.ts';
import { checkpoint } from '../../src/engine/upkeep/checkpoint.ts';
import { runDueSchedules } from '../../src/engine/upkeep/schedules.ts';
import { busyTotals, openStore, retryWhileBusy } from '../../src/engine/store/open-store.ts';
import { createMetricsJoiner } from '../../src/join-metrics.ts';
import { openTestEngine, type TestEngine } from '../support/engine-fixture.ts';

/** The samples of a metric by their labels, `{label="value"}` or ''. */
async function samplesOf(metrics: Metrics, name: string): Promise<Record<string, number>> {
  return parse(await metrics.registry.metrics(), name);
}

function parse(text: string, name: string): Record<string, number> {
  const lines = text.matchAll(new RegExp(`^${name}(\\{[^}]*\\})? (\\S+)$`, 'gm'));
  return Object.fromEntries([...lines].map(([, labels = '', value]) => [labels, Number(value)]));
}

test('the parts of a query add up its stages, each once a query', async () => {
  const metrics = createMetrics();
  const stages = { lexical: 10, 'lexical, live': 30, expand: 1, entities: 2, 'rerank by model': 500, 'a new one': 7 };
  observeStages(
    metrics,
    Object.entries(stages).map(([stage, ms]) => ({ stage, ms, in: 0, out: 0 })),
  );
  expect(await samplesOf(metrics, 'cairn_query_stage_duration_seconds_sum')).toEqual({
    '{stage="lexical"}': 0.04,
    '{stage="links"}': 0.003,
    '{stage="model"}': 0.5,
    '{stage="other"}': 0.007,
  });
  expect(await samplesOf(metrics, 'cairn_query_stage_duration_seconds_count')).toMatchObject({
    '{stage="lexical"}': 1,
  });
});

test('every stage of a real query belongs to a part', async () => {
  await using fixture = await openTestEngine();
  await fixture.add({ content: 'a lamp that is lit at dusk' });
  await fixture.drain();
  const { tenant, engine } = fixture;
  await tenant.query({ query: 'lamp', k: 5, filter: {} });
  await tenant.query({ query: 'nothing of the kind', k: 5, filter: {} });
  const { trace } = await tenant.query({ query: 'lamp', k: 5, filter: {}, explain: true });
  expect(trace).not.toEqual([]);
  const counted = await samplesOf(engine.metrics, 'cairn_query_stage_duration_seconds_count');
  expect(Object.keys(counted).sort()).toEqual(
    ['dense', 'embed', 'lexical', 'links', 'pack', 'plan', 'rerank', 'score'].map((stage) => `{stage="${stage}"}`),
  );
  expect(await samplesOf(engine.metrics, 'cairn_query_duration_seconds_count')).toEqual({ '': 3 });
  expect(await samplesOf(engine.metrics, 'cairn_query_hits_sum')).toEqual({ '': 2 });
  expect(await samplesOf(engine.metrics, 'cairn_queries_empty_total')).toEqual({ '': 1 });
  expect(await samplesOf(engine.metrics, 'cairn_queries_total')).toMatchObject({ '{profile="composite"}': 3 });
});

test('the time to be ready counts from the add, for each stage and priority', async () => {
  await using fixture = await openTestEngine();
  await fixture.add({ content: 'a lamp that is lit at dusk' });
  fixture.clock.advance(2_000);
  await fixture.add({ content: 'a boat that leaves at dawn' }, { bulk: true });
  fixture.clock.advance(1_000);
  await fixture.drain();
  const { metrics } = fixture.batch;
  const each = (interactive: number, bulk: number) => ({
    '{stage="encoded",priority="interactive"}': interactive,
    '{stage="encoded",priority="bulk"}': bulk,
    '{stage="linked",priority="interactive"}': interactive,
    '{stage="linked",priority="bulk"}': bulk,
  });
  expect(await samplesOf(metrics, 'cairn_memory_ready_seconds_count')).toEqual(each(1, 1));
  expect(await samplesOf(metrics, 'cairn_memory_ready_seconds_sum')).toEqual(each(3, 1));
});

test('runs of schedules are counted by how they went', async () => {
  await using fixture = await openTestEngine();
  await runDueSchedules(fixture.maintenance);
  const { metrics } = fixture.maintenance;
  const runs = await samplesOf(metrics, 'cairn_schedule_runs_total');
  expect(runs).toMatchObject({ '{schedule="expire",outcome="ok"}': 1 });
  fixture.clock.advance(60_000);
  fixture.store.db.exec('ALTER TABLE memories RENAME COLUMN expires_at TO gone');
  await runDueSchedules(fixture.maintenance);
  expect(await samplesOf(metrics, 'cairn_schedule_runs_total')).toMatchObject({
    '{schedule="expire",outcome="ok"}': 1,
    '{schedule="expire",outcome="failed"}': 1,
  });
});

test('checkpoints are counted: complete, or partial while a reader needs the log', async () => {
  await using fixture = await openTestEngine();
  const { metrics } = fixture.maintenance;
  const fill = () => {
    fixture.store.db.exec('CREATE TABLE IF NOT EXISTS filler (bytes BLOB)');
    fixture.store.db.exec('INSERT INTO filler VALUES (randomblob(6000000))');
  };
  checkpoint(fixture.maintenance);
  const outcomes = () => samplesOf(metrics, 'cairn_checkpoints_total');
  const counted = (complete: number, partial: number) => ({
    '{outcome="complete"}': complete,
    '{outcome="partial"}': partial,
    '{outcome="busy"}': 0,
  });
  expect(await outcomes()).toEqual(counted(0, 0));
  fill();
  checkpoint(fixture.maintenance);
  expect(await outcomes()).toEqual(counted(1, 0));
  // The file of the log is as large as before, but nothing in it is left to move.
  checkpoint(fixture.maintenance);
  fixture.store.db.exec('INSERT INTO filler VALUES (1)');
  checkpoint(fixture.maintenance);
  expect(await outcomes()).toEqual(counted(1, 0));
  const reader = openStore(fixture.file, { role: 'reader' });
  reader.db.exec('BEGIN');
  reader.db.prepare('SELECT count(*) FROM memories').get();
  fill();
  checkpoint(fixture.maintenance);
  reader.close();
  expect(await outcomes()).toEqual(counted(1, 1));
  expect(await samplesOf(metrics, 'cairn_checkpoint_duration_seconds_count')).toEqual({ '': 2 });
});

test('a look at the log gives up no lock that others rely on', async () => {
  await using fixture = await openTestEngine();
  const { db } = fixture.store;
  db.exec('CREATE TABLE filler (bytes BLOB)');
  db.exec('INSERT INTO filler VALUES (randomblob(6000000))');
  checkpoint(fixture.maintenance);
  // Locks are those of a process, so another one has to ask.
  const ask = `const db = new (require('better-sqlite3'))(process.argv[1], { timeout: 0 });
    try { db.exec('BEGIN IMMEDIATE'); console.log('got it'); } catch (error) { console.log(error.code); }`;
  const answer = () => execFileSync(process.execPath, ['-e', ask, fixture.file], { encoding: 'utf8' }).trim();
  expect(answer()).toBe('got it');
  db.exec('BEGIN IMMEDIATE');
  checkpointUnder(fixture);
  expect(answer()).toBe('SQLITE_BUSY');
  db.exec('ROLLBACK');
});

/** By another connection of the same process. */
function checkpointUnder({ file, maintenance }: TestEngine): void {
  const store = openStore(file, { role: 'worker' });
  checkpoint({ ...maintenance, open: () => ({ ...maintenance.open(), store }) });
  store.close();
}

test('waits for a locked file are counted once they end', async () => {
  const metrics = createMetrics();
  const before = busyTotals();
  let tries = 0;
  const busyTwice = () => {
    if (++tries <= 2) throw new Database.SqliteError('database is locked', 'SQLITE_BUSY');
    return 'done';
  };
  expect(retryWhileBusy(busyTwice)).toBe('done');
  expect(retryWhileBusy(() => 'at once')).toBe('at once');
  const after = busyTotals();
  expect(after.retries - before.retries).toBe(2);
  expect(after.waitedMs).toBeGreaterThan(before.waitedMs);
  expect(await samplesOf(metrics, 'cairn_sqlite_busy_retries_total')).toEqual({ '': after.retries });
  // A scrape does not count anything twice, and a thread without a registry counts too.
  metrics.watchBusy(() => ({ retries: 40, waitedMs: 1_500, timeouts: 1 }));
  expect(await samplesOf(metrics, 'cairn_sqlite_busy_retries_total')).toEqual({ '': after.retries + 40 });
  expect(await samplesOf(metrics, 'cairn_sqlite_busy_timeouts_total')).toEqual({ '': after.timeouts + 1 });
});

test('many who read the metrics at once share a reading that begins after all of them', async () => {
  const own = createMetrics();
  let readings = 0;
  const source = async () => {
    readings += 1;
    return [];
  };
  const read = createMetricsJoiner(own.registry, () => [source]);
  const first = read();
  await Promise.resolve();
  own.finishedJobs.inc({ state: 'done' }, 7);
  const texts = (await Promise.all([first, ...Array.from({ length: 100 }, read)])).map(({ text }) => text);
  expect(readings).toBe(2);
  const done = texts.slice(1).map((text) => parse(text, 'cairn_jobs_finished_total')['{state="done"}']);
  expect(new Set(done)).toEqual(new Set([7]));
  await read();
  expect(readings).toBe(3);
});

test('a thread that does not answer is served as it was last, so that no counter falls', async () => {
  const [own, theirs] = [createMetrics(), createMetrics()];
  own.watchProcess('1.2.3');
  own.finishedJobs.inc({ state: 'done' }, 1);
  theirs.finishedJobs.inc({ state: 'done' }, 41);
  let answer = () => theirs.registry.getMetricsAsJSON() as Promise<object>;
  const source = () => answer();
  const read = createMetricsJoiner(own.registry, () => [source]);
  const done = ({ text }: { text: string }) => parse(text, 'cairn_jobs_finished_total')['{state="done"}'];
  const first = await read();
  expect([first.isComplete, done(first)]).toEqual([true, 42]);
  answer = () => Promise.reject(new Error('the thread ended'));
  const second = await read();
  expect([second.isComplete, done(second)]).toEqual([false, 42]);
  // What one process says about itself is not lost in the joining.
  expect(second.text).toMatch(/^process_start_time_seconds \d{10}/m);
  expect(parse(second.text, 'cairn_build_info')).toEqual({ '{version="1.2.3"}': 1 });
});
