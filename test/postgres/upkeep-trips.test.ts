/** The upkeep of tenants in PostgreSQL to which nothing happens: it takes one statement for all of them. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ERASE_PENDING } from '../../src/engine/commands/erase.ts';
import { placeOf } from '../../src/engine/control/place-of.ts';
import { countMemories } from '../../src/engine/store/memory-counts.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import { tripTotals } from '../../src/engine/store/postgres/connection-channel.ts';
import { findInfo, putInfo } from '../../src/engine/store/store-info.ts';
import { openTenant } from '../../src/engine/tenant-file/open-tenant.ts';
import { createTenantPool, type TenantPool } from '../../src/engine/tenant-file/tenant-pool.ts';
import { type DueTenants, openDueTenants } from '../../src/engine/upkeep/due-tenants.ts';
import { findNextLook } from '../../src/engine/upkeep/next-look.ts';
import { createLook } from '../../src/engine/upkeep/schedules.ts';
import { startSweeps, type Sweeps } from '../../src/workers/sweeps.ts';
import { newMemory, openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { startPostgres } from '../support/postgres.ts';

const TENANTS = 5;
/** Time between two ticks, ms. */
const TICK_MS = 15_000;
/** Greatest number of round trips in which it is looked after, every two minutes. */
const MOST_TRIPS = 20;
/** Number of ticks after which every schedule of a tenant rests to which nothing happens. */
const SETTLED = 12;

const server = await startPostgres();
describe.skipIf(server === undefined)('upkeep of tenants to which nothing happens', () => {
  let fixture: TestEngine;
  let pool: TenantPool;
  let paths: string[];
  let worker: { sweeps: Sweeps; stop(): Promise<void>; due: DueTenants };
  const workers: (typeof worker)[] = [];
  afterAll(() => server?.stop());

  beforeEach(async () => {
    const settings = { OM_DATABASE_URL: await server!.createSchema(), OM_OPEN_TENANTS: '2' };
    fixture = await openTestEngine({ settings });
    paths = [];
    for (let n = 0; n < TENANTS; n += 1) {
      fixture.engine.control.createTenant(`t${n}`);
      await (await fixture.engine.tenant(`t${n}`)).addMemories([newMemory({ content: `Ferry ${n} leaves.` })]);
      paths.push(fixture.engine.control.findTenantPath(`t${n}`)!);
    }
    const { config, clock } = fixture.engine;
    const identity = fixture.engine.embedder;
    pool = createTenantPool(2, (file) =>
      openTenant(file, { place: placeOf(config, file), role: 'worker', identity, now: clock.now() }),
    );
    worker = startWorker(config);
  });
  afterEach(async () => {
    for (const one of workers.splice(0)) await one.stop();
    pool.close();
    await fixture.close();
  });

  /** Starts the upkeep of a worker with these settings, which shares the pool of tenants with the others. */
  function startWorker(config: TestEngine['engine']['config']): typeof worker {
    const { embedder } = fixture.engine;
    const { provider, model, dimensions, encoding } = embedder!;
    const stopped = new AbortController();
    const due = openDueTenants(config, { provider, model, dimensions, encoding })!;
    const { clock, metrics, logger } = fixture.maintenance;
    const sweeps = startSweeps({
      ...{ clock, metrics, logger, config, pool, dueTenants: due },
      ...{ listPaths: () => paths, runs: { ownersOf: () => [], paths: () => [] }, signal: stopped.signal },
    });
    const stop = async () => {
      stopped.abort();
      await sweeps.ended();
      due.close();
    };
    workers.push({ sweeps, stop, due });
    return workers.at(-1)!;
  }
  /** Counts the round trips of a tick that comes 15 s after the last one. */
  const tripsOfTick = async ({ sweeps } = worker) => {
    fixture.clock.advance(TICK_MS);
    const before = tripTotals().trips;
    await sweeps.tick();
    return tripTotals().trips - before;
  };
  const write = (tenant: number, work: (store: Store) => unknown) => {
    const { store } = pool.get(paths[tenant]!);
    store.write(() => void work(store));
  };
  const read = <T>(file: string, work: (store: Store) => T): T => work(pool.get(file).store);
  const settle = async () => {
    for (let n = 0; n < SETTLED; n += 1) await tripsOfTick();
  };
  const runsOf = async (schedule: string) => {
    const { values } = await fixture.maintenance.metrics.scheduleRuns.get();
    return values.find(({ labels }) => labels.schedule === schedule && labels.outcome === 'ok')!.value;
  };
  const trips = async (ticks: number, of = worker) => {
    const counts: number[] = [];
    for (let n = 0; n < ticks; n += 1) counts.push(await tripsOfTick(of));
    return counts;
  };

  test('takes one round trip for all, but every two minutes, whichever worker looks', async () => {
    await settle();
    const other = startWorker(fixture.engine.config);
    const counts = [...(await trips(4)), ...(await trips(4, other))];
    expect(counts.filter((count) => count > 1).length).toBeLessThanOrEqual(1);
    expect(Math.max(...counts)).toBeLessThanOrEqual(1 + MOST_TRIPS * TENANTS);
  });

  test('takes one round trip for the open ones each second, and none is left out after a write', async () => {
    await settle();
    const sweep = () => {
      const before = tripTotals().trips;
      const needs = worker.due.beginSweep();
      return { needed: paths.filter(needs), trips: tripTotals().trips - before };
    };
    expect(sweep()).toEqual({ needed: [], trips: 1 });
    write(2, (store) => putInfo(store, 'anything', 'x'));
    expect(sweep()).toEqual({ needed: [paths[2]], trips: 1 });
  });

  test('comes at the next tick after a write, for that tenant alone', async () => {
    await settle();
    write(3, (store) => putInfo(store, ERASE_PENDING, 'x'));
    await tripsOfTick();
    expect(paths.map((file) => read(file, (store) => findInfo(store, ERASE_PENDING)))).toEqual(
      paths.map(() => undefined),
    );
  });

  test('erases what expires as soon as in a tenant that is used', async () => {
    const expiresAt = fixture.clock.now() + 20 * TICK_MS;
    const memory = newMemory({ content: 'The ferry is late today.', expiresAt });
    await (await fixture.engine.tenant('t1')).addMemories([memory]);
    while (fixture.clock.now() < expiresAt - TICK_MS) await tripsOfTick();
    expect(read(paths[1]!, countMemories)).toBe(2);
    // The schedule's period is a minute.
    await trips(6);
    expect(read(paths[1]!, countMemories)).toBe(1);
  });

  test('takes a job back whose worker died, though nothing was due before it was claimed', async () => {
    await settle();
    const until = fixture.clock.now() + TICK_MS + 1_000;
    write(1, (store) =>
      store
        .prepare(`UPDATE jobs SET state = 'active', lease_owner = 'dead', lease_until = ?, lease_alone = 0`)
        .run(until),
    );
    const stateOf = () => read(paths[1]!, (store) => store.prepare('SELECT state FROM jobs').pluck().get());
    await tripsOfTick();
    expect(stateOf()).toBe('active');
    while (fixture.clock.now() <= until) await tripsOfTick();
    expect(stateOf()).toBe('queued');
  });

  test('comes at once for a worker with other settings, and after the clock was set back', async () => {
    await settle();
    const other = startWorker({ ...fixture.engine.config, OM_DECAY_INTERVAL_MINUTES: 1 });
    expect(await tripsOfTick(other)).toBeGreaterThan(TENANTS);
    await settle();
    fixture.clock.advanceDays(-1);
    const before = await runsOf('words');
    expect(await tripsOfTick()).toBeGreaterThan(TENANTS);
    // No schedule rests on, though the notes say until tomorrow.
    expect(await runsOf('words')).toBe(before + TENANTS);
  });

  test('lets no schedule rest for longer than it may, if the clock is set back during a look', async () => {
    await settle();
    const { clock, maintenance } = fixture;
    const context = { ...maintenance, open: () => pool.get(paths[0]!) };
    const rests = { words: clock.now() + 86_400_000 };
    const { store } = pool.get(paths[0]!);
    store.read(() => countMemories(store));
    const next = findNextLook(context, createLook(rests), store.position)!;
    expect(next.rests).toEqual({ words: clock.now() + 600_000 });
  });
});
