import { expect, test } from 'vitest';
import { createMetrics } from '../../../src/engine/metrics.ts';
import { silentLogger } from '../../../src/engine/ports.ts';
import type { StandbyReport } from '../../../src/engine/readers/standby-reads.ts';
import { createStandbyState } from '../../../src/engine/readers/standby-state.ts';

const A = '/data/a.sqlite';
const B = '/data/b.sqlite';
const ELSEWHERE = '/data/tenants/@eu.3/c.sqlite';

/** Makes a state with a clock that the test moves, and collects what it logs. */
function createState(problem: string | null = null) {
  const logged: string[] = [];
  const log = (_: object, event: string) => void logged.push(event);
  const metrics = createMetrics();
  const clock = { now: 0 };
  const logger = { ...silentLogger, info: log, warn: log };
  const hasTenant = (path: string) => path !== ELSEWHERE;
  const state = createStandbyState({ metrics, logger, problem, hasTenant, clock: () => clock.now });
  const note = (outcome: StandbyReport['outcome'], name: 'query' | 'startExport' = 'query', position = 0) =>
    state.note(A, name, { outcome, reason: 'ECONNREFUSED', position });
  return { state, clock, logged, note, metrics };
}

test('a read on which a write or the next read depends never goes to the standby, and a query does', () => {
  const { state } = createState();
  expect(state.use(A, 'query')).toMatchObject({ floor: 0 });
  for (const name of [
    ...(['listMatching', 'checkMove', 'readDocument', 'listJobs', 'listEvents', 'readLog'] as const),
    // What it lacks at the end of one window would be in no other.
    'diff' as const,
  ])
    expect(state.use(A, name), name).toBeNull();
});

test('the floor of a tenant only rises, and is not that of another one', () => {
  const { state, note } = createState();
  state.raise(A, 7);
  state.raise(A, 5);
  expect(state.use(A, 'query')!.floor).toBe(7);
  expect(state.use(B, 'query')!.floor).toBe(0);
  note('standby', 'query', 9);
  expect(state.use(A, 'query')!.floor).toBe(7);
  note('behind', 'startExport', 11);
  expect(state.use(A, 'readExportSlice')!.floor).toBe(11);
});

test('a lost standby is tried again by one read at a time, every five seconds, and is told of once', async () => {
  const { state, clock, logged, note, metrics } = createState();
  note('down');
  note('down');
  expect([state.isUp, state.use(A, 'query')]).toEqual([false, null]);
  clock.now = 5_000;
  expect(state.use(A, 'query')).not.toBeNull();
  expect(state.use(A, 'query')).toBeNull();
  // The thread of that read ended without a report.
  clock.now = 10_000;
  expect(state.use(A, 'query')).not.toBeNull();
  note('standby');
  expect(state.use(A, 'query')).not.toBeNull();
  expect(logged).toEqual(['standby_lost', 'standby_back']);
  const counts = (await metrics.standbyReads.get()).values.map(({ labels, value }) => [labels.outcome, value]);
  expect(Object.fromEntries(counts)).toEqual({ standby: 1, behind: 0, failed: 0, down: 4 });
});

test('a read of a tenant in another database neither tries a lost standby nor counts as one of its reads', async () => {
  const { state, clock, note, metrics } = createState();
  expect(state.use(ELSEWHERE, 'query')).toBeNull();
  note('down');
  expect(state.use(ELSEWHERE, 'query')).toBeNull();
  clock.now = 5_000;
  expect(state.use(ELSEWHERE, 'query')).toBeNull();
  expect(state.use(A, 'query')).not.toBeNull();
  const down = (await metrics.standbyReads.get()).values.find(({ labels }) => labels.outcome === 'down')!;
  expect(down.value).toBe(1);
});

test('a standby that cannot be read at the start counts as lost', () => {
  const { state, clock, logged } = createState('ECONNREFUSED');
  expect([state.isUp, state.use(A, 'query'), logged]).toEqual([false, null, ['standby_lost']]);
  clock.now = 5_000;
  expect(state.use(A, 'query')).not.toBeNull();
});

test('once a wait was in vain, reads do not wait for five seconds, and the log tells of it once a minute', () => {
  const { state, clock, logged, note } = createState();
  expect(state.use(A, 'query')!.waitMs).toBeGreaterThan(0);
  note('behind');
  expect(state.use(A, 'query')!.waitMs).toBe(0);
  clock.now = 5_000;
  expect(state.use(A, 'query')!.waitMs).toBeGreaterThan(0);
  note('behind');
  expect(logged).toEqual(['standby_behind']);
  clock.now = 60_001;
  note('behind');
  expect(logged).toEqual(['standby_behind', 'standby_behind']);
  expect(state.isUp).toBe(true);
});
