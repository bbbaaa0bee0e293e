import { describe, expect, expectTypeOf, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import type { MaintenanceContext } from '../../../src/engine/upkeep/maintenance-context.ts';
import { recoverJobs } from '../../../src/engine/upkeep/recover-jobs.ts';
import { readConfig } from '../../../src/engine/config.ts';
import type { requestRun } from '../../../src/engine/store/schedules.ts';
import { runDueSchedules, schedules } from '../../../src/engine/upkeep/schedules.ts';
import { createMetrics } from '../../../src/engine/metrics.ts';
import { openTenant } from '../../../src/engine/tenant-file/open-tenant.ts';
import { seedMemories } from '../../support/seed-store.ts';
import { openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';

/** More than one slice of the decay job. */
const MEMORIES = 6_001;
const LEASE_MS = 15_000;

/** A file where a day has passed and the decay job, which takes a few slices, is due. */
async function openDueEngine(settings: Readonly<Record<string, string>> = {}): Promise<TestEngine> {
  const fixture = await openTestEngine({
    settings: { OM_EMBEDDINGS: 'none', OM_LEASE_MS: String(LEASE_MS), ...settings },
  });
  const memories = Array.from({ length: MEMORIES }, (_, n) => ({ content: `n ${n}`, salience: 0.5, createdAt: START }));
  await seedMemories(fixture.store, memories, START);
  await runDueSchedules(fixture.maintenance);
  fixture.clock.advance(DAY_MS);
  return fixture;
}

/** The same file as another process sees it. */
function elsewhere(fixture: TestEngine): MaintenanceContext & Disposable {
  const tenant = openTenant(fixture.file, { role: 'worker', identity: null, now: START });
  return { ...fixture.maintenance, open: () => tenant, [Symbol.dispose]: () => tenant.close() };
}

test('only a schedule that is due without a last run may be requested', () => {
  expectTypeOf<Parameters<typeof requestRun>[1]>().toEqualTypeOf<'backup'>();
  const config = readConfig({ OM_BACKUP_EVERY: '1d', OM_BACKUP_FOLDER: '/tmp/backups' });
  expect(schedules(config).find(({ name }) => name === 'backup')).toMatchObject({ waitsAPeriod: false });
});

const countDecayed = (fixture: TestEngine) =>
  fixture.get<number>('SELECT count(*) FROM memory_dynamics WHERE salience_now < 0.5');

/** Calls back each time a slice opens the file. */
function eachSlice(context: MaintenanceContext, onSlice: () => void): MaintenanceContext {
  return {
    ...context,
    open() {
      onSlice();
      return context.open();
    },
  };
}

/** A decay job whose process dies after its first slice: it neither ends nor gives up its claim. */
async function dieInDecay(fixture: TestEngine): Promise<void> {
  const reached = Promise.withResolvers<void>();
  const signal = { aborted: false } as AbortSignal;
  using dying = elsewhere(fixture);
  const context = eachSlice({ ...dying, signal }, () => {
    if (countDecayed(fixture) === 0) return;
    reached.resolve();
    throw new Error('killed');
  });
  const died = runDueSchedules(context);
  await reached.promise;
  await died;
}

describe('schedules of one file', () => {
  test('one at a time, whoever asks', async () => {
    await using fixture = await openDueEngine();
    using other = elsewhere(fixture);
    const ran = await Promise.all([runDueSchedules(fixture.maintenance), runDueSchedules(other)]);
    const names = ran.flat();
    expect(names).toContain('decay');
    expect(names).toHaveLength(new Set(names).size);
    expect(countDecayed(fixture)).toBe(MEMORIES);
  });

  test('broken off by a stop, it is due at once for whoever looks next', async () => {
    await using fixture = await openDueEngine();
    const stop = new AbortController();
    const stopped = eachSlice({ ...fixture.maintenance, signal: stop.signal }, () => {
      if (countDecayed(fixture) > 0) stop.abort();
    });
    expect(await runDueSchedules(stopped)).toEqual([]);
    expect(countDecayed(fixture)).toBeLessThan(MEMORIES);
    using other = elsewhere(fixture);
    expect(await runDueSchedules(other)).toContain('decay');
    expect(countDecayed(fixture)).toBe(MEMORIES);
    expect(await runDueSchedules(fixture.maintenance)).toEqual([]);
  });

  test('broken off by a death, it is due again when the claim has lapsed', async () => {
    await using fixture = await openDueEngine();
    await dieInDecay(fixture);
    expect(countDecayed(fixture)).toBe(2_000);
    fixture.clock.advance(LEASE_MS - 1);
    expect(await runDueSchedules(fixture.maintenance)).not.toContain('decay');
    fixture.clock.advance(1);
    expect(await runDueSchedules(fixture.maintenance)).toContain('decay');
    expect(countDecayed(fixture)).toBe(MEMORIES);
  });

  test('the claim of the dead does not outlast a clock that was set back, nor a start where nobody else may work', async () => {
    await using fixture = await openDueEngine();
    fixture.clock.advance(3 * LEASE_MS);
    await dieInDecay(fixture);
    fixture.clock.advance(-3 * LEASE_MS);
    expect(await runDueSchedules(fixture.maintenance)).toContain('decay');

    fixture.clock.advance(DAY_MS);
    fixture.store.db.exec('UPDATE memory_dynamics SET salience_now = 0.5');
    await dieInDecay(fixture);
    recoverJobs(fixture.maintenance, { everyOwner: false });
    expect(await runDueSchedules(fixture.maintenance)).not.toContain('decay');
    recoverJobs(fixture.maintenance, { everyOwner: true });
    expect(await runDueSchedules(fixture.maintenance)).toContain('decay');
  });

  test('one that takes longer than a claim lasts keeps it', async () => {
    await using fixture = await openDueEngine();
    using other = elsewhere(fixture);
    const tries: Promise<string[]>[] = [];
    const slow = eachSlice(fixture.maintenance, () => {
      if (countDecayed(fixture) === 0 || countDecayed(fixture) === MEMORIES) return;
      // A slice and the renewal after it take two thirds of a claim's time.
      fixture.clock.advance(LEASE_MS / 3);
      tries.push(runDueSchedules(other));
    });
    expect(await runDueSchedules(slow)).toContain('decay');
    const others = (await Promise.all(tries)).flat();
    expect(tries.length * (LEASE_MS / 3)).toBeGreaterThan(LEASE_MS);
    expect(others).not.toContain('decay');
  });

  test('one that fails is tried again at the next look, and spares the others', async () => {
    await using fixture = await openDueEngine();
    const metrics = createMetrics();
    metrics.decayedMemories.inc = () => {
      throw new Error('no more');
    };
    const events: unknown[] = [];
    const logger = {
      ...fixture.maintenance.logger,
      error: (fields: object, event: string) => void events.push([event, fields]),
    };
    const failing = { ...fixture.maintenance, metrics, logger };
    const ran = await runDueSchedules(failing);
    expect(ran).not.toContain('decay');
    expect(ran).toContain('expire');
    expect(events).toMatchObject([['schedule_failed', { schedule: 'decay' }]]);
    expect(await runDueSchedules(fixture.maintenance)).toEqual(['decay']);
  });

  test('a period that was changed counts from the last run', async () => {
    await using fixture = await openDueEngine();
    expect(await runDueSchedules(fixture.maintenance)).toContain('decay');
    fixture.clock.advance(3_600_000);
    expect(await runDueSchedules(fixture.maintenance)).not.toContain('decay');
    const config = { ...fixture.maintenance.config, OM_DECAY_INTERVAL_MINUTES: 60 };
    expect(await runDueSchedules({ ...fixture.maintenance, config })).toContain('decay');
  });
});
