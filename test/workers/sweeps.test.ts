import { expect, onTestFinished, test } from 'vitest';
import { ERASE_PENDING } from '../../src/engine/commands/erase.ts';
import { openTenant, type OpenTenant } from '../../src/engine/tenant-file/open-tenant.ts';
import { silentLogger } from '../../src/engine/ports.ts';
import { claimJobs } from '../../src/engine/store/job-claims.ts';
import { findInfo, putInfo } from '../../src/engine/store/store-info.ts';
import { createTenantPool } from '../../src/engine/tenant-file/tenant-pool.ts';
import { createRuns } from '../../src/workers/runs.ts';
import { startSweeps } from '../../src/workers/sweeps.ts';
import { openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { seedMemories } from '../support/seed-store.ts';

test('leases are renewed while a large word index is cleaned after a delete', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { files, open, isPending, erase } = await openBoth(fixture);
  const [erased, other] = files;
  erase(erased);
  const renewed = Promise.withResolvers<boolean>();
  sweep(fixture, {
    ...{ files, get: (file) => open.get(file)! },
    ownersOf(file) {
      if (file === other) renewed.resolve(isPending(erased));
      return [];
    },
  });
  expect(await renewed.promise).toBe(true);
  await expect.poll(() => isPending(erased)).toBe(false);
});

test('files are swept, and leases renewed, more often if a lease is short', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const swept: string[] = [];
  const long = Promise.withResolvers<void>();
  const sweepBy = (leaseMs: number, onSweep: () => void) => {
    const config = { ...fixture.maintenance.config, OM_LEASE_MS: leaseMs };
    const maintenance = { ...fixture.maintenance, config };
    const ownersOf = () => (onSweep(), []);
    sweep({ ...fixture, maintenance }, { files: [fixture.file], get: () => fixture.maintenance.open(), ownersOf });
  };
  sweepBy(15_000, () => (swept.push('long'), long.resolve()));
  sweepBy(500, () => swept.push('short'));
  await long.promise;
  expect(swept[0]).toBe('short');
});

test('another tenant is cleaned while a large word index is', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { files, open, isPending, erase } = await openBoth(fixture);
  const [erased, other] = files;
  for (const file of files) erase(file);
  let wasFirst = false;
  sweep(fixture, {
    files,
    get(file) {
      wasFirst ||= isPending(erased) && !isPending(other);
      return open.get(file)!;
    },
    ownersOf: () => [],
  });
  await expect.poll(() => files.some(isPending)).toBe(false);
  expect(wasFirst).toBe(true);
});

test('leases of a run are renewed while the pool has closed its file for others', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { clock } = fixture;
  await fixture.add({ content: 'The harbour is closed on Mondays.' });
  fixture.engine.control.createTenant('second');
  const files = ['default', 'second'].map((tenant) => fixture.engine.control.findTenantPath(tenant)!);
  const [file, other] = files as [string, string];
  const options = { role: 'worker', identity: null, now: clock.now() } as const;
  const pool = createTenantPool(1, (path) => openTenant(path, options));
  const stop = new AbortController();
  const takeBack = () => Promise.resolve();
  const runs = createRuns({ logger: silentLogger, takeBack });
  const begun = Promise.withResolvers<void>();
  const ends = Promise.withResolvers<void>();
  const run = runs.run(file, async (owner) => {
    const { store } = pool.get(file);
    const claim = { owner, leaseMs: 15_000, now: clock.now(), limit: 1, step: 'encode' } as const;
    expect(store.write(() => claimJobs(store, claim))).toHaveLength(1);
    begun.resolve();
    await ends.promise;
  });
  await begun.promise;
  pool.get(other);
  expect(pool.openPaths()).toEqual([other]);
  const sweeps = startSweeps({ ...fixture.maintenance, pool, listPaths: () => files, runs, signal: stop.signal });
  onTestFinished(async () => {
    stop.abort();
    await sweeps.ended();
    pool.close();
  });
  const job = () => fixture.get('SELECT state, lease_until - ? AS left FROM jobs', clock.now());
  expect(job()).toEqual({ state: 'active', left: 15_000 });
  clock.advance(14_000);
  await expect.poll(job).toEqual({ state: 'active', left: 15_000 });
  pool.get(other);
  clock.advance(14_000);
  await expect.poll(job).toEqual({ state: 'active', left: 15_000 });
  ends.resolve();
  await run;
});

/** Opens two tenants, of which the first has a large word index. `erase` notes that deleted text is to be erased. */
async function openBoth(fixture: TestEngine) {
  const now = fixture.clock.now();
  fixture.engine.control.createTenant('second');
  const pathOf = (tenant: string) => fixture.engine.control.findTenantPath(tenant)!;
  const files = [pathOf('default'), pathOf('second')] as const;
  const open = new Map<string, OpenTenant>();
  for (const file of files) open.set(file, openTenant(file, { role: 'worker', identity: null, now }));
  const storeOf = (file: string) => open.get(file)!.store;
  for (let part = 0; part < 12; part++) {
    const texts = Array.from({ length: 250 }, (_, n) => ({ content: manyWords(part * 250 + n), createdAt: now }));
    await seedMemories(storeOf(files[0]), texts, now);
  }
  const erase = (file: string) => storeOf(file).write(() => putInfo(storeOf(file), ERASE_PENDING, String(now)));
  const isPending = (file: string) => findInfo(storeOf(file), ERASE_PENDING) !== undefined;
  onTestFinished(() => open.forEach(({ close }) => close()));
  return { files, open, isPending, erase };
}

interface Swept {
  readonly files: readonly string[];
  readonly get: (file: string) => OpenTenant;
  readonly ownersOf: (file: string) => readonly string[];
}

/** Looks after the files until the test has finished. */
function sweep(fixture: TestEngine, { files, get, ownersOf }: Swept): void {
  const stop = new AbortController();
  const sweeps = startSweeps({
    ...fixture.maintenance,
    pool: { get, evict() {}, openPaths: () => [...files], close() {} },
    ...{ listPaths: () => files, runs: { ownersOf, paths: () => [] }, signal: stop.signal },
  });
  onTestFinished(async () => {
    stop.abort();
    await sweeps.ended();
  });
}

/** A text whose words are in no other. */
function manyWords(number: number): string {
  return Array.from({ length: 100 }, (_, place) => `word${(number * 100 + place).toString(36)}`).join(' ');
}
