/** Due jobs are found by ranges of an index, however many jobs wait for a later time. */
import { expect, expectTypeOf, test } from 'vitest';
import { peekDispatchBatch, readLedgerStatus } from '../../../src/engine/store/dispatch.ts';
import type { claimSuspects } from '../../../src/engine/store/job-claims.ts';
import { claimDocument, claimJobs, hasDueJob, hasDueJobAt } from '../../../src/engine/store/job-claims.ts';
import { insertJob } from '../../../src/engine/store/jobs.ts';
import type { Store } from '../../../src/engine/store/open-store.ts';
import { postponeDocuments } from '../../../src/engine/store/waiting-documents.ts';
import { openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';

const CLAIMS = { owner: 'a worker', leaseMs: 15_000, now: START };
const WAIT = { which: 'all' as const, ms: 1_000, apartMs: 0, code: 'rate_limited', message: 'it waits', now: START };

/** What looks for due jobs. */
const LOOKS: Readonly<Record<string, (store: Store) => unknown>> = {
  hasDueJob: (store) => hasDueJob(store, START),
  hasDueJobAt: (store) => hasDueJobAt(store, 'ingest', START),
  postponeDocuments: (store) => postponeDocuments(store, WAIT),
  claimDocument: (store) => claimDocument(store, { ...CLAIMS, alone: false }),
  claimJobs: (store) => claimJobs(store, { ...CLAIMS, step: 'encode', limit: 64 }),
  peekDispatchBatch: (store) =>
    [true, false].map((bulk) =>
      peekDispatchBatch(store, { step: 'ingest', bulk, partial: true, embedsHere: true, now: START }),
    ),
  readLedgerStatus: (store) => readLedgerStatus(store, { leaseMs: 15_000, now: START }),
};

test('only claims of jobs that are no suspects may leave bulk jobs waiting', () => {
  expectTypeOf<Parameters<typeof claimJobs>[1]>().toHaveProperty('bulkUntil');
  expectTypeOf<Parameters<typeof claimSuspects>[1]>().not.toHaveProperty('bulkUntil');
  expectTypeOf<Parameters<typeof claimDocument>[1]>().not.toHaveProperty('bulkUntil');
});

let made = 0;
function putJob({ store, engine }: TestEngine, columns: Readonly<Record<string, number>> = {}): number {
  made += 1;
  const id = `0192aaaa-0000-7000-8000-${made.toString(16).padStart(12, '0')}`;
  return store.write(() => {
    const jobNo = insertJob(store, { id, step: 'ingest', bulk: false, now: engine.clock.now() });
    for (const [name, value] of Object.entries(columns))
      store.prepare(`UPDATE jobs SET ${name} = ? WHERE seq = ?`).run(value, jobNo);
    return jobNo;
  });
}

test.each(Object.entries(LOOKS))('%s reads no job that is not due', async (_, look) => {
  await using fixture = await openTestEngine();
  const { store } = fixture;
  putJob(fixture);
  const statements = new Set<string>();
  const spied: Store = { ...store, prepare: (sql: string) => (statements.add(sql), store.prepare(sql)) };
  store.write(() => look(spied));
  const searches = [...statements].filter((sql) => sql.includes('run_at') && sql.includes('jobs_due'));
  expect(searches.length).toBeGreaterThan(0);
  for (const sql of searches) {
    const plan = fixture.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql.replaceAll(/:\w+/g, '1')}`);
    const steps = plan.map(({ detail }) => detail).filter((detail) => detail.includes('jobs_due'));
    expect(steps.length).toBeGreaterThan(0);
    // Suspects, of which there are few, are read one by one.
    for (const step of steps) expect(step, sql).toMatch(/suspect=\? AND priority=\? AND run_at[<>]|suspect>\?\)/);
  }
});

test('jobs that are due, suspects and those written before the clock was set back are found at any place', async () => {
  await using fixture = await openTestEngine();
  const { store } = fixture;
  const isDue = () => [hasDueJob(store, START), hasDueJobAt(store, 'ingest', START), hasDueJobAt(store, 'link', START)];
  const later = { run_at: START + 60_000 };
  for (const priority of [0, 1]) for (const suspect of [0, 1, 8]) putJob(fixture, { ...later, priority, suspect });
  expect(isDue()).toEqual([false, false, false]);
  const everyPlace = [START - 5, START, START + 120_001].flatMap((run_at) =>
    [0, 1].flatMap((priority) => [0, 1, 8].map((suspect) => ({ run_at, priority, suspect }))),
  );
  for (const columns of everyPlace) {
    const jobNo = putJob(fixture, columns);
    expect(isDue(), JSON.stringify(columns)).toEqual([true, true, false]);
    store.write(() => store.prepare('DELETE FROM jobs WHERE seq = ?').run(jobNo));
  }
  const due = everyPlace.map((columns) => putJob(fixture, columns));
  const claimed = store.write(() => claimJobs(store, { ...CLAIMS, step: 'ingest', limit: 64 }));
  // Interactive jobs before bulk ones, those first that have been due longest.
  expect(claimed.map(({ jobNo }) => jobNo)).toEqual(due.filter((_, place) => everyPlace[place]!.suspect === 0));
  expect(store.write(() => postponeDocuments(store, WAIT))).toBe(due.length - claimed.length);
  expect(isDue()).toEqual([false, false, false]);
});

test('of due jobs those come first that have been due longest, interactive ones before bulk ones', async () => {
  await using fixture = await openTestEngine();
  const { store } = fixture;
  const places = [
    { priority: 0, run_at: START - 9 },
    { priority: 0, run_at: START },
    { priority: 0, run_at: START + 130_000 },
    { priority: 1, run_at: START - 10 },
    { priority: 1, run_at: START - 1 },
    { priority: 1, run_at: START + 125_000 },
  ];
  const order = new Map([5, 3, 1, 4, 2, 0].map((place) => [place, putJob(fixture, places[place])]));
  for (const place of places.keys())
    expect(store.write(() => claimDocument(store, { ...CLAIMS, alone: false })?.jobNo)).toBe(order.get(place));
});
