import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createCensusTaker, type Census } from '../../src/engine/census.ts';
import { readConfig } from '../../src/engine/config.ts';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { scheduleNames } from '../../src/engine/upkeep/schedules.ts';
import { silentLogger } from '../../src/engine/ports.ts';
import { claimJobs } from '../../src/engine/store/job-claims.ts';
import { failJob, finishJob, insertJob } from '../../src/engine/store/jobs.ts';
import { openStore, type Store } from '../../src/engine/store/open-store.ts';
import { putInfo } from '../../src/engine/store/store-info.ts';
import { createManualClock, START } from '../support/engine-fixture.ts';
import { seedMemories } from '../support/seed-store.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** A data folder with a control database, tenants' files on request, and somebody who counts them. */
function openField() {
  const clock = createManualClock();
  const config = readConfig({ OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite') });
  const control = openControlDatabase(config, clock);
  const taken: number[] = [];
  const newTaker = () =>
    createCensusTaker({
      control,
      clock,
      logger: silentLogger,
      schedules: scheduleNames(config),
      onTaken: (busyMs) => taken.push(busyMs),
    });
  const write = (tenant: string, work: (store: Store) => void) => {
    const store = openStore(control.findTenantPath(tenant)!, { role: 'worker', create: true });
    store.write(() => work(store));
    store.close();
  };
  onTestFinished(() => control.close());
  return { clock, control, newTaker, taken, write };
}

function enqueue(store: Store, step: 'encode' | 'link', count: number, now: number): void {
  for (let n = 0; n < count; n++) insertJob(store, { id: randomUUID(), memory: n + 1, step, bulk: n % 2 === 1, now });
}

const jobsOf = ({ jobs }: Census) =>
  Object.fromEntries(jobs.flatMap(({ step, state, jobs: n }) => (n === 0 ? [] : [[`${step} ${state}`, n]])));
const agesOf = ({ oldest }: Census) => Object.fromEntries(oldest.map(({ step, ageMs }) => [step, ageMs]));

test('what all files hold is added up, whatever pages it is read in', async () => {
  const { clock, control, newTaker, write } = openField();
  control.createTenant('other');
  write('default', (store) => {
    enqueue(store, 'encode', 4_001, START - 9_000);
    enqueue(store, 'link', 1, START - 5_000);
    const claim = { owner: 'worker', leaseMs: 60_000, now: START };
    const [active, failing, ...dying] = claimJobs(store, { ...claim, step: 'encode', limit: 2_403 });
    const failure = { code: 'invalid', message: 'no' };
    failJob(store, failing!, { ...failure, retryAt: START + 1_000 }, START);
    for (const dead of dying.slice(1)) failJob(store, dead, { ...failure, retryAt: null }, START);
    finishJob(store, dying[0]!, START);
    expect(active).toBeDefined();
  });
  write('other', (store) => enqueue(store, 'encode', 2, START - 20_000));
  const census = await newTaker().read();
  expect(jobsOf(census!)).toEqual({
    'encode queued': 4_001 - 2_403 + 2,
    'encode active': 1,
    'encode failed': 1,
    'encode dead': 2_400,
    'link queued': 1,
  });
  expect(agesOf(census!)).toMatchObject({ ingest: 0, settle: 0, encode: 20_000, link: 5_000 });
  expect(census).toMatchObject({ tenants: 2, unreadable: 0 });
  expect(census!.databaseBytes).toBe(
    ['default', 'other'].reduce((sum, id) => sum + fs.statSync(control.findTenantPath(id)!).size, 0),
  );
  expect(clock.now()).toBe(START);
});

test('memories are counted by sector and state, and waypoints without stated links', async () => {
  const { newTaker, control } = openField();
  const store = openStore(control.findTenantPath('default')!, { role: 'worker', create: true });
  const seeded = await seedMemories(
    store,
    Array.from({ length: 4_100 }, (_, n) => ({
      content: `memory ${n}`,
      sectors: n % 4 === 0 ? (['episodic'] as const) : (['semantic', 'episodic'] as const),
    })),
    START,
  );
  store.write(() => {
    store.prepare(`UPDATE memory_dynamics SET state = 'failed' WHERE seq = ?`).run(seeded[0]!.memoryNo);
    for (const [place, { memoryNo }] of seeded.entries()) {
      if (place === 0) continue;
      store
        .prepare(
          `INSERT INTO edges (src, dst, type, weight, automatic, created_at, updated_at) VALUES (?, ?, ?, 0.5, 0, 0, 0)`,
        )
        .run(memoryNo, seeded[0]!.memoryNo, place <= 3 ? 'supports' : 'waypoint');
    }
  });
  store.close();
  const census = await newTaker().read();
  const counted = census!.memories.filter(({ memories }) => memories > 0);
  expect(counted).toEqual([
    { sector: 'episodic', state: 'ready', memories: 1_024 },
    { sector: 'episodic', state: 'failed', memories: 1 },
    { sector: 'semantic', state: 'ready', memories: 3_075 },
  ]);
  expect(census!.waypoints).toBe(4_100 - 4);
});

test('a schedule last ran where that is longest ago, and other facts of a file are no schedules', async () => {
  const { control, newTaker, write } = openField();
  control.createTenant('other');
  write('default', (store) => {
    putInfo(store, 'last_decay', String(START - 1_000));
    putInfo(store, 'last_model', 'a model');
  });
  write('other', (store) => putInfo(store, 'last_decay', String(START - 7_000)));
  expect((await newTaker().read())!.schedules).toEqual([{ schedule: 'decay', at: START - 7_000 }]);
});

test('a file that is damaged is counted as such and spares the others; one that nobody made yet is empty', async () => {
  const { control, newTaker, write } = openField();
  for (const id of ['damaged', 'unmade']) control.createTenant(id);
  write('default', (store) => enqueue(store, 'link', 3, START));
  fs.rmSync(control.findTenantPath('unmade')!, { force: true });
  const damaged = control.findTenantPath('damaged')!;
  fs.mkdirSync(path.dirname(damaged), { recursive: true });
  fs.writeFileSync(damaged, 'this is no database, and long enough to be looked at'.repeat(100));
  const census = await newTaker().read();
  expect(jobsOf(census!)).toEqual({ 'link queued': 3 });
  expect(census).toMatchObject({ tenants: 3, unreadable: 1 });
});

test('what a tenant had goes with it, and all who ask at once get one census', async () => {
  const { control, newTaker, write, taken } = openField();
  control.createTenant('other');
  write('other', (store) => enqueue(store, 'link', 3, START));
  const taker = newTaker();
  const [one, same] = await Promise.all([taker.read(), taker.read()]);
  expect(one).toBe(same);
  expect(taken).toHaveLength(1);
  control.eraseTenant('other');
  // Within the rest that follows, nothing is counted anew.
  expect(await taker.read()).toBe(one);
  const next = await newTaker().read();
  expect(jobsOf(next!)).toEqual({});
  expect(next!.tenants).toBe(1);
  await taker.close();
  expect(taken).toHaveLength(2);
});

test('a file is counted again once it has changed', async () => {
  const { control, newTaker, write } = openField();
  write('default', (store) => enqueue(store, 'link', 1, START));
  const file = control.findTenantPath('default')!;
  const anHourAgo = Date.now() / 1_000 - 3_600;
  for (const name of [file, `${file}-wal`]) if (fs.existsSync(name)) fs.utimesSync(name, anHourAgo, anHourAgo);
  const taker = newTaker();
  expect(jobsOf((await taker.read())!)).toEqual({ 'link queued': 1 });
  write('default', (store) => enqueue(store, 'link', 1, START + 1));
  await expect.poll(async () => jobsOf((await taker.read())!)).toEqual({ 'link queued': 2 });
});
