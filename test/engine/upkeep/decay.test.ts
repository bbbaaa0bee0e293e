import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { decayMemories } from '../../../src/engine/upkeep/decay-memories.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import { setStatus } from '../../../src/engine/store/dynamics.ts';
import type { Sector } from '../../../src/engine/types.ts';
import {
  createManualClock,
  dumpTables,
  expectNoOrphans,
  newMemory,
  openTestEngine,
  START,
  type TestEngine,
} from '../../support/engine-fixture.ts';

const SECTOR_LAMBDAS = {
  episodic: 0.015,
  semantic: 0.005,
  procedural: 0.008,
  emotional: 0.02,
  reflective: 0.001,
} as const;

interface Dynamics {
  readonly salience: number;
  readonly salience_at: number;
  readonly salience_now: number;
  readonly decay_lambda: number;
  readonly strength: number;
  readonly strength_at: number;
}

const dynamicsOf = (fixture: TestEngine, memoryNo: number): Dynamics =>
  fixture.get(
    'SELECT salience, salience_at, salience_now, decay_lambda, strength, strength_at FROM memory_dynamics WHERE seq = ?',
    memoryNo,
  );

const anchorsOf = (fixture: TestEngine) =>
  fixture.all('SELECT seq, salience, salience_at, decay_lambda, strength, strength_at FROM memory_dynamics');

const addForced = (fixture: TestEngine, sector: Sector, fields = {}) =>
  fixture.add({ content: `A ${sector} thing.`, metadata: { sector }, ...fields });

describe('salience', () => {
  test('fades by the decay of its sector from the anchor, strength by 0.01 a day', async () => {
    await using fixture = await openTestEngine();
    const ids = new Map<Sector, string>();
    for (const sector of Object.keys(SECTOR_LAMBDAS) as Sector[]) {
      ids.set(sector, (await addForced(fixture, sector, { importance: 0.8 })).id);
    }
    await fixture.drain();
    fixture.clock.advanceDays(30);
    for (const [sector, lambda] of Object.entries(SECTOR_LAMBDAS)) {
      const memory = await fixture.tenant.getMemory(ids.get(sector as Sector)!);
      expect(memory.salience, sector).toBeCloseTo(0.8 * Math.exp(-30 * lambda), 10);
      expect(memory.strength).toBeCloseTo(Math.exp(-0.3), 10);
    }
    const stats = await fixture.tenant.sectorStats();
    expect(stats.find(({ sector }) => sector === 'emotional')).toEqual({
      sector: 'emotional',
      count: 1,
      averageSalience: expect.closeTo(0.8 * Math.exp(-0.6), 10) as number,
    });
  });

  test('is read the same whether the decay job ran once, a hundred times or never, now and on later days', async () => {
    const read = async (runsADay: number) => {
      await using fixture = await openTestEngine();
      const added = [await addForced(fixture, 'emotional'), await addForced(fixture, 'semantic', { importance: 1 })];
      await fixture.drain();
      const values: unknown[] = [];
      for (let day = 0; day < 5; day += 1) {
        fixture.clock.advanceDays(1.3);
        for (let run = 0; run < runsADay; run += 1) await decayMemories(fixture.maintenance);
        values.push(await Promise.all(added.map(async ({ id }) => (await fixture.tenant.getMemory(id)).salience)));
      }
      const anchors = anchorsOf(fixture);
      await decayMemories(fixture.maintenance);
      values.push(fixture.all('SELECT salience_now FROM memory_dynamics'), anchors);
      return values;
    };
    const never = await read(0);
    expect(await read(1)).toEqual(never);
    expect(await read(100)).toEqual(never);
  });

  test('is cached by the job as it is read', async () => {
    await using fixture = await openTestEngine();
    const { id, memoryNo } = await addForced(fixture, 'emotional');
    await fixture.drain();
    fixture.clock.advanceDays(12);
    expect(await decayMemories(fixture.maintenance)).toBe(1);
    expect(dynamicsOf(fixture, memoryNo).salience_now).toBeCloseTo((await fixture.tenant.getMemory(id)).salience, 12);
    const before = dumpTables(fixture.store);
    await decayMemories(fixture.maintenance);
    expect(dumpTables(fixture.store)).toEqual(before);
  });

  test('has an anchor that only reinforcement and a stated importance move', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { id, memoryNo } = await addForced(fixture, 'emotional');
    await fixture.drain();
    const anchor = dynamicsOf(fixture, memoryNo);
    expect(anchor).toMatchObject({ salience: 0.4, salience_at: START, strength_at: START });
    clock.advanceDays(3);
    await decayMemories(fixture.maintenance);
    await tenant.query({ query: 'thing', k: 1, filter: {}, reinforce: false });
    await tenant.patchMemory(id, { content: 'Another emotional thing.', tags: ['x'] });
    await fixture.drain();
    expect(dynamicsOf(fixture, memoryNo)).toMatchObject({
      salience: 0.4,
      salience_at: START,
      strength: 1,
      strength_at: START,
    });

    const faded = 0.4 * Math.exp(-0.06);
    expect((await tenant.reinforceMemory(id, 0.25)).salience).toBeCloseTo(faded + 0.25, 10);
    expect(dynamicsOf(fixture, memoryNo)).toMatchObject({
      salience_at: clock.now(),
      strength: 1,
      strength_at: clock.now(),
    });
    clock.advanceDays(40);
    expect((await tenant.reinforceMemory(id, 0)).strength).toBeCloseTo(Math.exp(-0.4), 10);
    expect((await tenant.reinforceMemory(id, 0.01)).strength).toBeCloseTo(Math.exp(-0.4) + 0.1, 10);
    expect((await tenant.reinforceMemory(id, 1)).salience).toBeLessThanOrEqual(1);
  });

  test('keeps its past at the old decay when the settings change it', async () => {
    const clock = createManualClock();
    let file: string;
    let id: string;
    let memoryNo: number;
    {
      await using first = await openTestEngine({ clock });
      file = first.file;
      ({ id, memoryNo } = await addForced(first, 'emotional', { importance: 0.8 }));
      await first.drain();
      clock.advanceDays(10);
    }
    {
      await using second = await openTestEngine({ clock, file, settings: { OM_DECAY_LAMBDA: '0.5' } });
      await decayMemories(second.maintenance);
      expect(dynamicsOf(second, memoryNo)).toMatchObject({ decay_lambda: 0.5, salience_at: clock.now() });
      clock.advanceDays(2);
      expect((await second.tenant.getMemory(id)).salience).toBeCloseTo(0.8 * Math.exp(-10 * 0.02 - 2 * 0.5), 10);
    }
    await using third = await openTestEngine({ clock, file });
    await decayMemories(third.maintenance);
    clock.advanceDays(5);
    await decayMemories(third.maintenance);
    const expected = 0.8 * Math.exp(-10 * 0.02 - 2 * 0.5 - 5 * 0.02);
    expect((await third.tenant.getMemory(id)).salience).toBeCloseTo(expected, 10);
    expect(dynamicsOf(third, memoryNo).salience_now).toBeCloseTo(expected, 10);
  });

  test('keeps its past at the old decay when the sector changes', async () => {
    await using fixture = await openTestEngine();
    const { id } = await addForced(fixture, 'emotional', { importance: 0.8 });
    await fixture.drain();
    fixture.clock.advanceDays(10);
    await fixture.tenant.patchMemory(id, { metadata: { sector: 'reflective' } });
    await fixture.drain();
    fixture.clock.advanceDays(10);
    expect((await fixture.tenant.getMemory(id)).salience).toBeCloseTo(0.8 * Math.exp(-10 * 0.02 - 10 * 0.001), 10);
  });

  test('never rises when the clock steps back, and nothing breaks', async () => {
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    const { id, memoryNo } = await addForced(fixture, 'emotional');
    await fixture.drain();
    clock.advanceDays(10);
    await tenant.reinforceMemory(id, 0.1);
    const { salience } = await tenant.getMemory(id);
    clock.advanceDays(-5);
    await decayMemories(fixture.maintenance);
    await runDueSchedules(fixture.maintenance);
    expect((await tenant.getMemory(id)).salience).toBe(salience);
    expect(dynamicsOf(fixture, memoryNo).salience_now).toBeCloseTo(salience, 12);
    await tenant.reinforceMemory(id, 0);
    expect((await tenant.getMemory(id)).salience).toBeCloseTo(salience, 12);
    clock.advanceDays(5);
    expect((await tenant.getMemory(id)).salience).toBeCloseTo(salience, 12);
    clock.set(START - 20 * DAY_MS);
    await addForced(fixture, 'semantic');
    expect(await fixture.drain()).toBe(1);
    expectNoOrphans(fixture.store);
  });

  test('lies in 0..1 after any sequence of operations, and the cache agrees with what is read', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('reinforce' as const), boost: fc.double({ min: 0, max: 1, noNaN: true }) }),
      fc.record({ kind: fc.constant('importance' as const), value: fc.double({ min: 0, max: 1, noNaN: true }) }),
      fc.record({ kind: fc.constant('days' as const), days: fc.double({ min: -30, max: 400, noNaN: true }) }),
      fc.record({ kind: fc.constantFrom('decay' as const, 'drain' as const, 'again' as const, 'text' as const) }),
    );
    await using fixture = await openTestEngine();
    const { tenant, clock } = fixture;
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const content = `Memory number ${(run += 1)}.`;
        const { id, memoryNo } = await fixture.add({ content });
        for (const [n, next] of steps.entries()) {
          if (next.kind === 'reinforce') await tenant.reinforceMemory(id, next.boost);
          else if (next.kind === 'importance') await tenant.patchMemory(id, { importance: next.value });
          else if (next.kind === 'days') clock.advanceDays(next.days);
          else if (next.kind === 'decay') await decayMemories(fixture.maintenance);
          else if (next.kind === 'drain') await fixture.drain();
          else if (next.kind === 'again')
            await tenant.addMemories([newMemory({ content: (await tenant.getMemory(id)).content })]);
          else await tenant.patchMemory(id, { content: `I feel happy, step ${n} of memory ${run}: how to do it.` });
          for (const value of [
            (await tenant.getMemory(id)).salience,
            (await tenant.getMemory(id)).strength,
            ...Object.values(dynamicsOf(fixture, memoryNo)).slice(0, 1),
          ]) {
            expect(value).toBeGreaterThanOrEqual(0);
            expect(value).toBeLessThanOrEqual(1);
          }
        }
        await decayMemories(fixture.maintenance);
        expect(dynamicsOf(fixture, memoryNo).salience_now).toBeCloseTo((await tenant.getMemory(id)).salience, 12);
        await tenant.deleteMemory(id);
      }),
      { numRuns: 40 },
    );
  });
});

describe('the decay job', () => {
  test('archives what has faded below the setting, active memories only', async () => {
    await using fixture = await openTestEngine({ settings: { OM_ARCHIVE_BELOW: '0.2' } });
    const fading = await addForced(fixture, 'emotional');
    const lasting = await addForced(fixture, 'reflective');
    const superseded = await addForced(fixture, 'episodic', { importance: 0.1 });
    await fixture.drain();
    fixture.store.write(() => setStatus(fixture.store, superseded.memoryNo, 'superseded'));
    const statuses = async () =>
      await Promise.all(
        [fading, lasting, superseded].map(async ({ id }) => (await fixture.tenant.getMemory(id)).status),
      );
    fixture.clock.advanceDays(Math.log(2) / 0.02 - 0.01);
    await decayMemories(fixture.maintenance);
    expect(await statuses()).toEqual(['active', 'active', 'superseded']);
    fixture.clock.advanceDays(0.02);
    await decayMemories(fixture.maintenance);
    expect(await statuses()).toEqual(['archived', 'active', 'superseded']);
  });

  test('archives all that faded at once, each with what it replaced', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none', OM_ARCHIVE_BELOW: '1' } });
    await fixture.tenant.addMemories(Array.from({ length: 250 }, (_, n) => newMemory({ content: `n ${n}` })));
    fixture.clock.advanceDays(1);
    await decayMemories(fixture.maintenance);
    const count = (from: string) => fixture.get<number>(`SELECT count(*) FROM ${from}`);
    expect(count(`memory_dynamics WHERE status = 'archived'`)).toBe(250);
    expect(count('memories WHERE version = 2')).toBe(250);
    expect(count(`memory_revisions WHERE status = 'active' AND snapshot = '{"status":"active"}'`)).toBe(250);
  });

  test('archives nothing by default', async () => {
    await using fixture = await openTestEngine();
    const { id } = await addForced(fixture, 'emotional', { importance: 0 });
    fixture.clock.advanceDays(10_000);
    await decayMemories(fixture.maintenance);
    expect(await fixture.tenant.getMemory(id)).toMatchObject({ status: 'active', salience: 0 });
  });

  test('goes through more than one slice', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    await fixture.tenant.addMemories(Array.from({ length: 2_001 }, (_, n) => newMemory({ content: `n ${n}` })));
    fixture.clock.advanceDays(1);
    expect(await decayMemories(fixture.maintenance)).toBe(2_001);
    expect(fixture.get('SELECT count(*) FROM memory_dynamics WHERE salience_now < 0.4')).toBe(2_001);
  });

  test('runs once a day from the first look on, and the clock set back does not hold it up', async () => {
    await using fixture = await openTestEngine();
    const due = () => runDueSchedules(fixture.maintenance);
    expect(await due()).not.toContain('decay');
    fixture.clock.advance(DAY_MS - 1);
    expect(await due()).not.toContain('decay');
    fixture.clock.advance(1);
    expect(await due()).toContain('decay');
    expect(await due()).toEqual([]);
    fixture.clock.advance(-3 * DAY_MS);
    expect(await due()).toContain('decay');
    expect(await due()).toEqual([]);
  });
});

test('every seven days waypoints under 0.05 go, and only those', async () => {
  await using fixture = await openTestEngine();
  const memoryNos = [];
  for (const content of ['a', 'b', 'c']) memoryNos.push((await fixture.add({ content })).memoryNo);
  const [a, b, c] = memoryNos as [number, number, number];
  const insert = fixture.store.db.prepare(
    `INSERT INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at) VALUES (?, ?, ?, NULL, ?, 0, 0, 0)`,
  );
  insert.run(a, b, 'waypoint', 0.0499);
  insert.run(a, c, 'waypoint', 0.05);
  insert.run(b, c, 'supports', 0.01);
  await runDueSchedules(fixture.maintenance);
  fixture.clock.advanceDays(7);
  expect(await runDueSchedules(fixture.maintenance)).toContain('prune');
  expect(fixture.all('SELECT src, dst FROM edges ORDER BY src')).toEqual([
    { src: a, dst: c },
    { src: b, dst: c },
  ]);
});
