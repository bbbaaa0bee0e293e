import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readConfig, type Config } from '../../src/engine/config.ts';
import { createDocumentShares } from '../../src/engine/control/document-shares.ts';
import { EngineError } from '../../src/engine/errors.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { openEngine } from '../../src/engine/open-engine.ts';
import { openParts } from '../../src/engine/parts/engine-parts.ts';
import { createTenantShares } from '../../src/engine/parts/tenant-shares.ts';
import { silentLogger, systemClock } from '../../src/engine/ports.ts';
import { openStore, type SqliteStore } from '../../src/engine/store/open-store.ts';
import type { TenantPool } from '../../src/engine/tenant-file/tenant-pool.ts';
import { createExecutor, type Executor, type ExecutorOptions } from '../../src/workers/executor.ts';
import type { DueStep, JobSource, RunWork, Work } from '../../src/workers/job-source.ts';
import { newMemory } from '../support/engine-fixture.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { sharedParser } from '../support/shared-parser.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** What a source of work is given to be opened; it opens everything else itself. */
interface SourcePlace {
  readonly config: Config;
  /** The open files of the tenants, which the executor uses too. */
  readonly pool: TenantPool;
  readonly listPaths: () => readonly string[];
}

export interface SourceKind {
  open(place: SourcePlace): Promise<JobSource>;
  /** For each step, the greatest number of pieces of work that the source hands out at the same time. */
  readonly slots: Readonly<Record<Exclude<DueStep, 'reason'>, number>>;
  /** Greatest number of jobs in one piece of work. */
  readonly pieceMost: number;
}

const PARSERS = 2;
const PATIENCE = { timeout: 120_000, interval: 20 };

/**
 * Declares the tests that every source of work must pass, on real ledgers and with the real executor. The source is not
 * told of adds: it must find the jobs by itself.
 */
export function describeJobSource(name: string, kind: SourceKind): void {
  describe(`${name} as a source of work`, () => {
    test('hands out all that is due in every tenant, whenever it was added, and each job once', async () => {
      const yard = await openYard(kind);
      await yard.add(150);
      await yard.add(20, { tenant: 'second' });
      await yard.start();
      await yard.add(150);
      await yard.untilDone('default', 300);
      await yard.untilDone('second', 20);
      for (const tenant of ['default', 'second']) {
        expect(yard.get(tenant, 'SELECT count(*) FROM jobs WHERE attempts + crashes > 0 OR lease_epoch > 1')).toBe(0);
      }
    });

    test('hands out what falls due later when it does', async () => {
      const yard = await openYard(kind);
      await yard.add(2);
      yard.exec('default', `UPDATE jobs SET state = 'failed', run_at = run_at + 1500 WHERE seq = 2`);
      await yard.start();
      await yard.untilDone('default', 2);
      expect(yard.get('default', 'SELECT finished_at >= run_at FROM jobs WHERE seq = 2')).toBe(1);
    });

    test('tenants take turns: a large import holds up a small one by a few pieces of work', async () => {
      const yard = await openYard(kind);
      await yard.add(12 * kind.pieceMost, { bulk: true });
      await yard.add(5, { tenant: 'second', bulk: true });
      await yard.start();
      await yard.untilDone('default', 12 * kind.pieceMost);
      await yard.untilDone('second', 5);
      const order = yard.claimed.map(({ path: file }) => file);
      expect(order.length).toBeGreaterThanOrEqual(13);
      expect(order.indexOf(yard.pathOf('second'))).toBeLessThan(4);
    });

    test('has no more pieces of a step out than it has slots for the step', async () => {
      const yard = await openYard(kind);
      await yard.add(8 * kind.pieceMost);
      yard.hold();
      await yard.start();
      await expect.poll(() => yard.out('encode'), PATIENCE).toBe(kind.slots.encode);
      yard.release();
      await yard.untilDone('default', 8 * kind.pieceMost);
      expect(yard.mostOut('encode')).toBe(kind.slots.encode);
    });

    test('hands out a document while another one is read', async () => {
      const yard = await openYard(kind);
      for (const content of ['# One', '# Two', '# Three', '# Four', '# Five']) await yard.addDocument(content);
      yard.hold({ claims: true });
      await yard.start();
      await expect.poll(() => yard.out('ingest'), PATIENCE).toBe(kind.slots.ingest);
      yard.release();
      await expect
        .poll(() => yard.get('default', `SELECT count(*) FROM documents WHERE state = 'ready'`), PATIENCE)
        .toBe(5);
      expect(yard.mostOut('ingest')).toBe(kind.slots.ingest);
    });

    test("tenants take turns with documents: many of one hold up another's by a few", async () => {
      const yard = await openYard(kind);
      for (let n = 0; n < 30; n++) await yard.addDocument(`# Notes ${n}`);
      for (let n = 0; n < 3; n++) await yard.addDocument(`# Notes ${n}`, 'second');
      await yard.start();
      await yard.untilRead('default', 30);
      await yard.untilRead('second', 3);
      const order = yard.begun.map(({ path: file }) => file);
      expect(order.length).toBeGreaterThanOrEqual(33);
      expect(order.lastIndexOf(yard.pathOf('second'))).toBeLessThan(12);
    });

    test('documents of a tenant whose parser time is spent wait, at no cost to them, and those of others are read', async () => {
      const yard = await openYard(kind);
      yard.engine.control.limits.change({ tenantId: 'default' }, { parse_seconds: 60 });
      yard.shareOf('default').spendParser(300_000);
      for (let n = 0; n < 5; n++) await yard.addDocument(`# Notes ${n}`);
      for (let n = 0; n < 5; n++) await yard.addDocument(`# Notes ${n}`, 'second');
      await yard.start();
      await yard.untilRead('second', 5);
      const waiting = `SELECT count(*) FROM jobs WHERE state = 'queued' AND attempts + crashes = 0
        AND error_code = 'rate_limited' AND error LIKE '%parse_seconds%' AND run_at > created_at`;
      await expect.poll(() => yard.get('default', waiting), PATIENCE).toBe(5);
      expect(yard.claimed.filter(({ path: file }) => file === yard.pathOf('default'))).toEqual([]);

      yard.engine.control.limits.change({ tenantId: 'default' }, { parse_seconds: null });
      await expect.poll(() => yard.shareOf('default').waitForParser()).toBeUndefined();
      yard.exec('default', `UPDATE jobs SET run_at = created_at WHERE state = 'queued'`);
      await yard.untilRead('default', 5);
      expect(yard.get('default', `SELECT count(*) FROM jobs WHERE attempts + crashes > 0`)).toBe(0);
    });

    test('hands out again what failed before it was claimed, and the failure counts against no job', async () => {
      const yard = await openYard(kind);
      await yard.add(100);
      yard.fail(3);
      await yard.start();
      await yard.untilDone('default', 100);
      expect(yard.get('default', 'SELECT count(*) FROM jobs WHERE attempts + crashes > 0')).toBe(0);
    });

    test('jobs that were in flight at a crash are handed out together, and nothing else with them', async () => {
      const yard = await openYard(kind);
      await yard.add(20);
      yard.exec('default', 'UPDATE jobs SET suspect = 64 WHERE seq BETWEEN 5 AND 7');
      await yard.start();
      await yard.untilDone('default', 20);
      expect(yard.all('default', 'SELECT DISTINCT lease_alone FROM jobs WHERE seq BETWEEN 5 AND 7')).toEqual([3]);
      expect(yard.all('default', 'SELECT DISTINCT lease_alone FROM jobs WHERE seq NOT BETWEEN 5 AND 7')).toEqual([0]);
    });

    test('a job that ends while its work is on the way stays ended, and is not handed out again', async () => {
      const yard = await openYard(kind);
      const [job] = await yard.add(1);
      yard.hold();
      await yard.start();
      await expect.poll(() => yard.out('encode'), PATIENCE).toBe(1);
      await (await yard.engine.tenant('default')).cancelJob(job!);
      yard.release();
      await yard.add(1, { tenant: 'second' });
      await yard.untilDone('second', 1);
      expect(yard.get('default', 'SELECT state FROM jobs')).toBe('cancelled');
      expect(yard.claimed.filter(({ path: file }) => file === yard.pathOf('default'))).toEqual([]);
    });

    test('says now and then that it is time to look after all files', async () => {
      const yard = await openYard(kind);
      await yard.start();
      await expect.poll(() => yard.ticks(), PATIENCE).toBeGreaterThan(0);
    });

    test('hands out nothing once it has paused, and what it leaves is done by the next', async () => {
      const yard = await openYard(kind);
      await yard.add(6 * kind.pieceMost);
      yard.hold();
      const source = await yard.start();
      await expect.poll(() => yard.out('encode'), PATIENCE).toBe(kind.slots.encode);
      await source.pause();
      await yard.add(10, { tenant: 'second' });
      yard.release();
      await yard.drain();
      await source.close();
      expect(yard.mostOut('encode')).toBe(kind.slots.encode);
      expect(yard.claimed.length).toBeLessThanOrEqual(kind.slots.encode);
      const left = 6 * kind.pieceMost - yard.claimed.length * kind.pieceMost;
      expect(yard.get('default', `SELECT count(*) FROM jobs WHERE state = 'queued' AND attempts + crashes = 0`)).toBe(
        left,
      );
      expect(yard.get('default', `SELECT count(*) FROM jobs WHERE state = 'active'`)).toBe(0);

      await yard.start();
      await yard.untilDone('default', 6 * kind.pieceMost);
      await yard.untilDone('second', 10);
    });
  });
}

// ── The ledgers, the executor, and what comes between it and the source ──────────────────────────────────────────────

interface AddOptions {
  readonly tenant?: string;
  readonly bulk?: boolean;
}

async function openYard(kind: SourceKind) {
  const config = readConfig({
    OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'),
    OM_EMBEDDINGS: 'none',
    OM_PARSERS: String(PARSERS),
  });
  const engine = await openEngine({ config, writer: 'inline', dispatcher: { dispatch() {}, close: async () => {} } });
  onTestFinished(() => engine.close());
  engine.control.createTenant('second');
  await (await engine.tenant('second')).addMemories([]);
  const pathOf = (tenant: string) => engine.control.findTenantPath(tenant)!;
  const listPaths = () => ['default', 'second'].map(pathOf);
  const spy = createSpy();
  let running: { readonly source: JobSource; readonly executor: Executor; close(): Promise<void> } | undefined;
  const drain = async () => running?.executor.drain();
  const read = <T>(tenant: string, work: (store: SqliteStore) => T) => withWorkersStore(pathOf(tenant), work);
  const get = (tenant: string, sql: string) => read(tenant, ({ db }) => db.prepare(sql).pluck().get());
  onTestFinished(async () => {
    spy.release();
    await running?.source.pause();
    await drain();
    await running?.source.close();
    await running?.close();
  });
  return {
    engine,
    pathOf,
    shareOf: createDocumentShares(engine.control, engine.rates),
    get,
    drain,
    ...spy,
    /** Opens and starts the source with a new executor, after the ones that were started before are closed. */
    async start(): Promise<JobSource> {
      await running?.close();
      const shareOf = createTenantShares(engine.control, engine.rates);
      const { executor, pool, close } = openExecutor(config, { listPaths, shareOf });
      const source = await kind.open({ config, pool, listPaths });
      running = { source, executor, close };
      source.start(spy.watch(executor.run));
      return source;
    },
    /** Adds memories. @returns the ids of their jobs */
    async add(count: number, { tenant = 'default', bulk = false }: AddOptions = {}): Promise<string[]> {
      const items = Array.from({ length: count }, (_, n) =>
        newMemory({ content: `${tenant} says ${n} of ${Math.random()}` }),
      );
      const { outcomes } = await (await engine.tenant(tenant)).addMemories(items, { bulk });
      return outcomes.flatMap((outcome) => (outcome.kind === 'accepted' ? [outcome.jobId] : []));
    },
    async addDocument(content: string, tenantId = 'default'): Promise<void> {
      const tenant = await engine.tenant(tenantId);
      await tenant.addDocument(newDocument(await upload(tenant, content)));
    },
    async untilRead(tenant: string, count: number): Promise<void> {
      const read = () => get(tenant, `SELECT count(*) FROM documents WHERE state = 'ready'`);
      await expect.poll(read, PATIENCE).toBe(count);
    },
    exec: (tenant: string, sql: string) => read(tenant, ({ db }) => db.exec(sql)),
    all: (tenant: string, sql: string) => read(tenant, ({ db }) => db.prepare(sql).pluck().all()),
    async untilDone(tenant: string, count: number): Promise<void> {
      const done = () => get(tenant, `SELECT count(*) FROM jobs WHERE state = 'done'`);
      await expect.poll(done, PATIENCE).toBe(count);
    },
  };
}

/** Opens an executor as a worker does, with files of its own. */
function openExecutor(config: Config, places: Pick<ExecutorOptions, 'listPaths' | 'shareOf'>) {
  const metrics = createMetrics();
  const common = { config, clock: systemClock, metrics };
  const { budget, ...parts } = openParts({ ...common, role: 'worker', onCall: () => {} });
  return {
    executor: createExecutor({
      ...{ ...common, ...parts, documentParser: sharedParser(config) },
      ...{ logger: silentLogger, ...places },
    }),
    pool: parts.pool,
    async close() {
      await parts.pageFetcher?.close();
      budget.close();
    },
  };
}

/**
 * Makes a spy that stands between a source and its executor. It counts the pieces of work that the source has handed
 * out, and can hold work back or let it fail before the executor gets it.
 */
function createSpy() {
  const claimed: Exclude<Work, { kind: 'tick' }>[] = [];
  const begun: Exclude<Work, { kind: 'tick' }>[] = [];
  const out = new Map<string, number>();
  const mostOut = new Map<string, number>();
  let ticks = 0;
  let failures = 0;
  let held: { readonly promise: Promise<void>; readonly claims: boolean; resolve(): void } | undefined;
  const count = (step: string, change: 1 | -1) => {
    const now = (out.get(step) ?? 0) + change;
    out.set(step, now);
    mostOut.set(step, Math.max(now, mostOut.get(step) ?? 0));
  };
  return {
    /** Pieces of work in which jobs were claimed, in the order in which they ended. */
    claimed: claimed as readonly Exclude<Work, { kind: 'tick' }>[],
    /** Documents in the order in which their readings began. */
    begun: begun as readonly Exclude<Work, { kind: 'tick' }>[],
    ticks: () => ticks,
    out: (step: string) => out.get(step) ?? 0,
    mostOut: (step: string) => mostOut.get(step) ?? 0,
    /** Lets the next `times` pieces of work fail. */
    fail: (times: number) => void (failures = times),
    /** Holds all work back until `release`; with `claims` the source is told that something was claimed. */
    hold({ claims = false } = {}): void {
      held = { ...Promise.withResolvers<void>(), claims };
    },
    release(): void {
      held?.resolve();
      held = undefined;
    },
    watch(run: RunWork): RunWork {
      return async (work, onClaimed) => {
        if (work.kind === 'tick') {
          ticks += 1;
          return run(work);
        }
        count(work.step, 1);
        try {
          if (held?.claims) onClaimed?.();
          await held?.promise;
          if (failures > 0 && failures--) throw new EngineError('unavailable', 'this piece of work fails');
          if (work.kind === 'named' && work.step === 'ingest') begun.push(work);
          const jobs = await run(work, () => {
            if (work.step === 'ingest') begun.push(work);
            onClaimed?.();
          });
          if (jobs > 0) claimed.push(work);
          return jobs;
        } finally {
          count(work.step, -1);
        }
      };
    },
  };
}

function withWorkersStore<T>(file: string, work: (store: SqliteStore) => T): T {
  const store = openStore(file, { role: 'worker' });
  try {
    return work(store);
  } finally {
    store.close();
  }
}
