/** A clock that jumps, by a wrong setting or by a machine that slept, leaves values in range and nothing stuck. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recoverJobs } from '../../../src/engine/upkeep/recover-jobs.ts';
import { runDueSchedules, scheduleNames } from '../../../src/engine/upkeep/schedules.ts';
import { openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';

const DAYS = [-400, -30, -1, 0.02, 1, 7, 400];

interface Dynamics {
  readonly salience: number;
  readonly now: number;
  readonly strength: number;
}

function expectInRange(fixture: TestEngine): void {
  const rows = fixture.all<Dynamics>('SELECT salience, salience_now AS now, strength FROM memory_dynamics');
  expect(rows.length).toBeGreaterThan(0);
  for (const { salience, now, strength } of rows) {
    for (const value of [salience, now, strength]) {
      expect(value).toBeGreaterThanOrEqual(0);
      expect(value).toBeLessThanOrEqual(1);
    }
    expect(now).toBeLessThanOrEqual(salience);
  }
}

test('whatever the clock jumps by, what was added is finished and found, and no value leaves its range', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...DAYS), { minLength: 1, maxLength: 5 }), async (jumps) => {
      await using fixture = await openTestEngine();
      let count = 0;
      for (const days of [0, ...jumps]) {
        // The memory is accepted at one time, worked on at another, and looked after at a third.
        await fixture.add({ content: `The ferry number ${count++} sails from Bergen` });
        fixture.clock.advanceDays(days);
        await fixture.drain();
        expect(fixture.get<number>(`SELECT count(*) FROM memory_dynamics WHERE state <> 'ready'`)).toBe(0);
        expectInRange(fixture);
        const { hits } = await fixture.tenant.query({ query: 'ferry from Bergen', k: 10, filter: {} });
        expect(hits).toHaveLength(count);
        for (const { score, memory } of hits) {
          expect(score).toBeGreaterThanOrEqual(0);
          expect(score).toBeLessThanOrEqual(1);
          expect(memory.salience).toBeGreaterThanOrEqual(0);
          expect(memory.salience).toBeLessThanOrEqual(1);
        }
        await runDueSchedules(fixture.maintenance);
        expectInRange(fixture);
      }
    }),
    { numRuns: 15 },
  );
});

test('after a jump each schedule runs once, and goes on from there when the clock is set right', async () => {
  await using fixture = await openTestEngine();
  await fixture.add({ content: 'The ferry sails from Bergen' });
  await fixture.drain();
  await runDueSchedules(fixture.maintenance);
  const known = scheduleNames(fixture.maintenance.config);
  for (const days of [400, -400, -400, 400]) {
    fixture.clock.advanceDays(days);
    // Every schedule is due: a long time has passed, or the last run lies ahead.
    expect(new Set(await runDueSchedules(fixture.maintenance))).toEqual(new Set(known));
    expect(await runDueSchedules(fixture.maintenance)).toEqual([]);
  }
  expect(fixture.clock.now()).toBe(START);
});

test('a job that a worker held when the clock was set back is taken up again', async () => {
  await using fixture = await openTestEngine();
  fixture.clock.advanceDays(400);
  await fixture.add({ content: 'The ferry sails from Bergen' });
  fixture.store.write(() =>
    fixture.store
      .prepare(`UPDATE jobs SET state = 'active', lease_owner = 'gone', lease_until = ?, lease_epoch = lease_epoch + 1`)
      .run(fixture.clock.now() + 15_000),
  );
  fixture.clock.set(START);
  recoverJobs(fixture.maintenance, { everyOwner: false });
  fixture.clock.advance(60_000);
  await fixture.drain();
  expect(fixture.get<string>('SELECT state FROM memory_dynamics')).toBe('ready');
});
