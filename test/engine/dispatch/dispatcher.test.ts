import fs from 'node:fs';
import path from 'node:path';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { v7 as uuidv7 } from 'uuid';
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { noteMaintained, openStepQueues } from '../../../src/engine/adapters/bullmq-queues.ts';
import { openQueueLink } from '../../../src/engine/adapters/open-queue-link.ts';
import { readConfig, type Config } from '../../../src/engine/config.ts';
import { openControlDatabase } from '../../../src/engine/control/open-control-database.ts';
import type { DispatchLedger } from '../../../src/engine/dispatch/dispatch-ports.ts';
import { createDispatcher } from '../../../src/engine/dispatch/dispatcher.ts';
import { BULK_WINDOW_JOBS, DOCUMENT_WINDOW_JOBS, INTERACTIVE_WINDOW_JOBS } from '../../../src/engine/dispatch/lanes.ts';
import { createTenantFinder, ledgerOverStores, ledgerOverWriter } from '../../../src/engine/dispatch/ledgers.ts';
import { createFilePoller } from '../../../src/engine/dispatch/ledger-poller.ts';
import type { Engine } from '../../../src/engine/engine.ts';
import type { StepPayload } from '../../../src/engine/job-payloads.ts';
import { MAX_JOB_IDS, type QueuedStep } from '../../../src/engine/jobs.ts';
import { createMetrics, type Metrics } from '../../../src/engine/metrics.ts';
import { openEngine } from '../../../src/engine/open-engine.ts';
import { openTenant } from '../../../src/engine/tenant-file/open-tenant.ts';
import { silentLogger, systemClock, type JobDispatcher, type Logger } from '../../../src/engine/ports.ts';
import { claimJobs } from '../../../src/engine/store/job-claims.ts';
import type { Store } from '../../../src/engine/store/open-store.ts';
import { createTenantPool, type TenantPool } from '../../../src/engine/tenant-file/tenant-pool.ts';
import { createGroupingWriter } from '../../../src/engine/writer/grouping-writer.ts';
import { createInlineTransport } from '../../../src/engine/writer/inline-transport.ts';
import { copyBlankTenant } from '../../support/blank-files.ts';
import { newMemory } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';
import { canStartRedis, startRedisServer } from '../../support/redis.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** Ledgers in real files and queues in a real Redis, with dispatchers between them. Nobody works the queues. */
interface Yard {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly engine: Engine;
  readonly pool: TenantPool;
  dispatcher(options?: {
    readonly leads?: boolean;
    readonly metrics?: Metrics;
    readonly logger?: Logger;
  }): Promise<JobDispatcher>;
  /** Nobody is told of them. */
  add(count: number, options?: { readonly tenant?: string; readonly bulk?: boolean }): Promise<void>;
  pathOf(tenant: string): string;
  waiting(step?: QueuedStep): Promise<WaitingJob[]>;
  /** Picks up a job, as a worker would. */
  pickUp(job: WaitingJob, step?: QueuedStep): Promise<void>;
}

interface WaitingJob {
  readonly name: string;
  /** Grows with the order in which jobs were handed out. */
  readonly addedAt: number;
  readonly bulk: boolean;
  readonly payload: StepPayload;
}

const LEDGERS: readonly (readonly [string, (config: Config, pool: TenantPool) => DispatchLedger])[] = [
  ['over the writer of an API', overWriter],
  [
    "over a worker's own connection",
    (config, pool) =>
      ledgerOverStores({
        control: controlOf(config),
        poller: pollerOf(config),
        pool,
        clock: systemClock,
        embedsHere: config.embedsHere,
        leaseMs: config.OM_LEASE_MS,
      }),
  ],
];

function overWriter(config: Config): DispatchLedger {
  const writing = openPool(config);
  const transport = createInlineTransport({ pool: writing, config, clock: systemClock });
  const writer = createGroupingWriter(transport, { metrics: createMetrics() });
  const { embedsHere } = config;
  return ledgerOverWriter({
    control: controlOf(config),
    poller: pollerOf(config),
    clock: systemClock,
    embedsHere,
    writer,
  });
}

function pollerOf(config: Config) {
  return createFilePoller({ openMost: config.OM_OPEN_TENANTS, leaseMs: config.OM_LEASE_MS, clock: systemClock });
}

function controlOf(config: Config) {
  const control = openControlDatabase(config, systemClock);
  onTestFinished(() => control.close());
  return control;
}

function openPool(config: Config): TenantPool {
  const pool = createTenantPool(config.OM_OPEN_TENANTS, (file) =>
    openTenant(file, { role: 'worker', identity: null, now: Date.now() }),
  );
  onTestFinished(() => pool.close());
  return pool;
}

async function openYard(makeLedger = LEDGERS[1]![1], redisUrl = inject('redisUrl')!): Promise<Yard> {
  const config = readConfig({ OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'), OM_EMBEDDINGS: 'none' });
  const silent = { dispatch() {}, close: async () => {} };
  const engine = await openEngine({ config, writer: 'inline', dispatcher: silent });
  onTestFinished(() => engine.close());
  const control = controlOf(config);
  const pool = openPool(config);
  const prefix = `cairn-test-${uuidv7()}`;
  const queues = new Map<QueuedStep, Queue>();
  const queueOf = (step: QueuedStep): Queue => {
    let queue = queues.get(step);
    if (queue === undefined) {
      queue = new Queue(step, { connection: { url: redisUrl }, prefix });
      queues.set(step, queue);
      const opened = queue;
      onTestFinished(async () => {
        await opened.obliterate({ force: true });
        await opened.close();
      });
    }
    return queue;
  };
  return {
    redisUrl,
    prefix,
    engine,
    pool,
    async dispatcher({ leads = true, metrics = createMetrics(), logger = silentLogger } = {}) {
      const dispatcher = createDispatcher({
        ledger: makeLedger(config, pool),
        queues: await openStepQueues({ place: { kind: 'redis', redisUrl, prefix }, logger }),
        server: 'redis',
        logger,
        metrics,
        leads,
        tenantOf: createTenantFinder(control),
      });
      onTestFinished(() => dispatcher.close());
      return dispatcher;
    },
    async add(count, { tenant = 'default', bulk = false } = {}) {
      if (tenant !== 'default' && control.findTenantPath(tenant) === undefined) {
        engine.control.createTenant(tenant);
        copyBlankTenant(control.findTenantPath(tenant)!);
      }
      await (await engine.tenant(tenant)).addMemories([newMemory({ content: `note ${uuidv7()}` })], { bulk });
      if (count > 1) repeatLastJob(pool.get(control.findTenantPath(tenant)!).store, count - 1);
    },
    pathOf: (tenant) => control.findTenantPath(tenant)!,
    async waiting(step = 'encode') {
      const jobs = await queueOf(step).getJobs(['waiting', 'prioritized'], 0, -1, true);
      return jobs.map((job) => ({
        name: job.id!,
        addedAt: job.timestamp,
        bulk: job.priority > 0,
        payload: job.data as StepPayload,
      }));
    },
    async pickUp({ name }, step = 'encode') {
      await queueOf(step).remove(name);
    },
  };
}

/** Adds jobs like the last one, for its memory: a dispatcher looks at jobs alone, and a memory takes far longer. */
function repeatLastJob(store: Store, times: number): void {
  const copy = store.prepare(
    `INSERT INTO jobs (uuid, kind, memory, step, state, priority, run_at, created_at, updated_at)
     SELECT randomblob(16), kind, memory, step, state, priority, run_at, created_at, updated_at
     FROM jobs ORDER BY seq DESC LIMIT 1`,
  );
  store.write(() => {
    for (let time = 0; time < times; time++) copy.run();
  });
}

const eventually = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 120_000, interval: 20 });
const jobNosOf = (jobs: readonly WaitingJob[]) => jobs.flatMap(({ payload }) => payload.jobNos);

describe.skipIf(inject('redisUrl') === null)('the dispatcher', () => {
  describe.each(LEDGERS)('%s', (_name, makeLedger) => {
    test('hands out every row that is due once, up to 64 to a job', async () => {
      const yard = await openYard(makeLedger);
      await yard.add(8 * MAX_JOB_IDS);
      await yard.dispatcher();
      await eventually(async () => expect(jobNosOf(await yard.waiting()).length).toBe(8 * MAX_JOB_IDS));
      const jobs = await yard.waiting();
      expect(new Set(jobNosOf(jobs)).size).toBe(8 * MAX_JOB_IDS);
      expect(jobs.length).toBe(8);
      expect(jobs.every(({ payload }) => payload.tenant === 'default' && !payload.alone)).toBe(true);
    });

    test('keeps a bounded window in Redis and fills it as jobs are picked up', async () => {
      const yard = await openYard(makeLedger);
      const rows = (BULK_WINDOW_JOBS + 3) * MAX_JOB_IDS;
      await yard.add(rows, { bulk: true });
      await yard.dispatcher();
      const seen = new Set<number>();
      await eventually(async () => expect((await yard.waiting()).length).toBe(BULK_WINDOW_JOBS));
      await eventually(async () => {
        const jobs = await yard.waiting();
        expect(jobs.length).toBeLessThanOrEqual(BULK_WINDOW_JOBS);
        for (const jobNo of jobNosOf(jobs)) seen.add(jobNo);
        for (const job of jobs.slice(0, 4)) await yard.pickUp(job);
        expect(seen.size).toBe(rows);
      });
    });

    test('hands out what it is told of', async () => {
      const yard = await openYard(makeLedger);
      const dispatcher = await yard.dispatcher();
      await yard.add(1);
      dispatcher.dispatch(yard.pathOf('default'), 'encode');
      await eventually(async () => expect(jobNosOf(await yard.waiting()).length).toBe(1));
    });

    test('bulk rows stay where they are while a document waits to be read, half a minute at most, and interactive ones do not', async () => {
      const yard = await openYard(makeLedger);
      const tenant = await yard.engine.tenant('default');
      await tenant.addDocument(newDocument(await upload(tenant, '# Ferries')));
      await yard.add(1, { bulk: true });
      await yard.add(1);
      await yard.dispatcher();
      const isBulk = async () => (await yard.waiting()).map(({ bulk }) => bulk);
      await eventually(async () => expect((await yard.waiting()).length).toBe(1));
      // Whoever is handed out now comes after everybody had a turn.
      await yard.add(1);
      await eventually(async () => expect((await yard.waiting()).length).toBe(2));
      expect(await isBulk()).toEqual([false, false]);
      const { store } = yard.pool.get(yard.pathOf('default'));
      store.write(() => store.prepare(`UPDATE jobs SET run_at = run_at - 30000 WHERE priority = 1`).run());
      await eventually(async () => expect((await isBulk()).toSorted()).toEqual([false, false, true]));
    });

    test('what a worker that died held is handed out again, of tenants that nobody else looks at too', async () => {
      const yard = await openYard(makeLedger);
      const held = (tenant: string, leaseMs: number) => {
        const { store } = yard.pool.get(yard.pathOf(tenant));
        const options = { step: 'encode', limit: 64, owner: 'a worker', leaseMs, now: Date.now() } as const;
        store.write(() => claimJobs(store, options));
      };
      for (const tenant of ['ada', 'ben', 'cy']) await yard.add(3, { tenant });
      held('ada', -1);
      held('ben', 25_000);
      await yard.dispatcher();
      const tenants = async () => (await yard.waiting()).map(({ payload }) => payload.tenant);
      await eventually(async () => expect(new Set(await tenants())).toEqual(new Set(['ada', 'cy'])));
      expect(jobNosOf((await yard.waiting()).filter(({ payload }) => payload.tenant === 'ada')).length).toBe(3);
      // While it waits in Redis its worker dies, too.
      held('cy', -1);
      await eventually(async () => expect(await tenants()).toEqual(expect.arrayContaining(['cy', 'cy'])));
      expect(await tenants()).not.toContain('ben');
    });

    test('a ledger that cannot be read holds up no other and is said once', async () => {
      const yard = await openYard(makeLedger);
      for (const tenant of ['ada', 'ben', 'cy']) await yard.add(3, { tenant });
      const file = yard.engine.control.createTenant('broken') && yard.pathOf('broken');
      fs.writeFileSync(file, 'scribbled over '.repeat(1_000));
      const log = createLog();
      const dispatcher = await yard.dispatcher({ logger: log.logger });
      dispatcher.dispatch(file, 'encode');
      const tenants = async () => new Set((await yard.waiting()).map(({ payload }) => payload.tenant));
      await eventually(async () => expect(await tenants()).toEqual(new Set(['ada', 'ben', 'cy'])));
      await yard.add(1, { tenant: 'ben' });
      await eventually(async () => expect(jobNosOf(await yard.waiting()).length).toBe(10));
      expect(log.of('ledger_unusable')).toEqual([{ code: 'internal' }]);
    });

    test('a queue that forgot everything is filled again', async () => {
      const yard = await openYard(makeLedger);
      await yard.add(100);
      const metrics = createMetrics();
      await yard.dispatcher({ metrics });
      await eventually(async () => expect(jobNosOf(await yard.waiting()).length).toBe(100));
      await forgetAll(yard);
      await eventually(async () => expect(jobNosOf(await yard.waiting()).length).toBe(100));
      // At its start it found a Redis that knew nothing, too.
      expect((await metrics.queueRefills.get()).values[0]?.value).toBeGreaterThanOrEqual(2);
    });
  });

  test('tenants take turns, so that a bulk import starves nobody', async () => {
    const yard = await openYard();
    await yard.add(BULK_WINDOW_JOBS * 2 * MAX_JOB_IDS, { bulk: true });
    await yard.add(300, { tenant: 'ada' });
    await yard.add(300, { tenant: 'ben' });
    await yard.dispatcher();
    await eventually(async () => expect((await yard.waiting()).length).toBe(BULK_WINDOW_JOBS));
    const rowsOf = (jobs: readonly WaitingJob[], tenant: string) =>
      jobNosOf(jobs.filter(({ payload }) => payload.tenant === tenant)).length;
    const jobs = await yard.waiting();
    // What does not fill a job may follow a moment later, when the window is full.
    expect(rowsOf(jobs, 'ada')).toBeGreaterThan(300 - MAX_JOB_IDS);
    expect(rowsOf(jobs, 'ben')).toBeGreaterThan(300 - MAX_JOB_IDS);
  });

  test('few documents of one tenant wait in the queue, so that one that comes later waits behind a few', async () => {
    const yard = await openYard();
    const dispatcher = await yard.dispatcher();
    const addDocument = async (tenantId: string, content: string) => {
      const tenant = await yard.engine.tenant(tenantId);
      await tenant.addDocument(newDocument(await upload(tenant, content)));
      dispatcher.dispatch(yard.pathOf(tenantId), 'ingest');
    };
    for (let n = 0; n < 20; n++) await addDocument('default', `# Notes ${n}`);
    await eventually(async () => expect((await yard.waiting('ingest')).length).toBe(DOCUMENT_WINDOW_JOBS));
    yard.engine.control.createTenant('ada');
    await addDocument('ada', '# Notes');
    const tenants = async () => (await yard.waiting('ingest')).map(({ payload }) => payload.tenant);
    for (let picked = 0; !(await tenants()).includes('ada'); picked++) {
      expect(picked).toBeLessThan(3);
      expect(await tenants()).toEqual(Array(DOCUMENT_WINDOW_JOBS).fill('default'));
      await yard.pickUp((await yard.waiting('ingest'))[0]!, 'ingest');
      await eventually(async () => expect((await yard.waiting('ingest')).length).toBe(DOCUMENT_WINDOW_JOBS));
    }
  });

  test('imports of 40 tenants that fill the queue leave room for interactive adds, whichever tenant they are of', async () => {
    const yard = await openYard();
    for (let tenant = 0; tenant < 40; tenant++) await yard.add(MAX_JOB_IDS, { tenant: `import-${tenant}`, bulk: true });
    const dispatcher = await yard.dispatcher();
    await eventually(async () => expect((await yard.waiting()).length).toBe(BULK_WINDOW_JOBS));
    const interactive = async () => (await yard.waiting()).filter(({ bulk }) => !bulk);
    const add = async (tenant: string, count: number) => {
      await yard.add(count, { tenant });
      dispatcher.dispatch(yard.pathOf(tenant), 'encode');
    };
    await add('zoe', 1);
    await eventually(async () => expect(await interactive()).toMatchObject([{ payload: { tenant: 'zoe' } }]));

    // Those of one tenant wait in the ledger, so that they are not far ahead of another's.
    await add('zoe', 20 * MAX_JOB_IDS);
    await eventually(async () => expect((await interactive()).length).toBe(INTERACTIVE_WINDOW_JOBS));
    await add('import-3', 1);
    await yard.pickUp((await interactive())[0]!);
    await yard.pickUp((await interactive())[0]!);
    await eventually(async () =>
      expect((await interactive()).map(({ payload }) => payload.tenant)).toContain('import-3'),
    );
    expect((await yard.waiting()).length).toBeLessThanOrEqual(BULK_WINDOW_JOBS + INTERACTIVE_WINDOW_JOBS);
  });

  test('interactive adds are handed out before bulk ones, whichever tenant they are of', async () => {
    const yard = await openYard();
    for (let tenant = 0; tenant < 10; tenant++) await yard.add(MAX_JOB_IDS, { tenant: `import-${tenant}`, bulk: true });
    for (const tenant of ['zoe', 'import-3']) await yard.add(1, { tenant });
    await yard.dispatcher();
    await eventually(async () => expect((await yard.waiting()).length).toBe(12));
    const byBatch = (await yard.waiting()).toSorted((one, other) => one.addedAt - other.addedAt);
    expect(byBatch.slice(0, 2).map(({ bulk }) => bulk)).toEqual([false, false]);
  });

  test('a Redis that no worker of the schedules has spoken to for long is said once', async () => {
    const yard = await openYard();
    const log = createLog();
    await yard.dispatcher({ logger: log.logger });
    const redis = new Redis(yard.redisUrl);
    onTestFinished(() => redis.disconnect());
    const { redisUrl, prefix } = yard;
    const link = await openQueueLink(
      { place: { kind: 'redis', redisUrl, prefix }, logger: silentLogger },
      { blocking: true },
    );
    onTestFinished(() => link.close());
    // A minute is over.
    const lapse = () => eventually(async () => expect(await redis.del(`${yard.prefix}:maintained`)).toBe(1));
    await lapse();
    await eventually(async () => expect(log.of('queue_without_worker')).toEqual([{ queue: 'maintain' }]));
    await noteMaintained(link);
    await yard.add(1);
    await eventually(async () => expect((await yard.waiting()).length).toBe(1));
    expect(log.of('queue_without_worker').length).toBe(1);
  });

  test('interactive adds are picked up before bulk ones', async () => {
    const yard = await openYard();
    await yard.add(10 * MAX_JOB_IDS, { bulk: true });
    const dispatcher = await yard.dispatcher();
    await eventually(async () => expect((await yard.waiting()).length).toBe(10));
    await yard.add(1);
    dispatcher.dispatch(yard.pathOf('default'), 'encode');
    await eventually(async () => expect((await yard.waiting()).length).toBe(11));
    const [first, ...others] = await yard.waiting();
    expect(first).toMatchObject({ bulk: false });
    expect(first!.payload.jobNos.length).toBe(1);
    expect(others.every(({ bulk }) => bulk)).toBe(true);
  });

  test('while jobs wait to be picked up, rows that come one by one gather to few jobs', async () => {
    const yard = await openYard();
    await yard.add(4 * MAX_JOB_IDS);
    const dispatcher = await yard.dispatcher();
    await eventually(async () => expect((await yard.waiting()).length).toBe(4));
    const waiting = new Set((await yard.waiting()).map(({ name }) => name));
    const started = performance.now();
    for (let added = 0; added < 100; added++) {
      await yard.add(1);
      dispatcher.dispatch(yard.pathOf('default'), 'encode');
    }
    const others: WaitingJob[] = [];
    await eventually(async () => {
      for (const job of (await yard.waiting()).filter(({ name }) => !waiting.has(name))) {
        others.push(job);
        await yard.pickUp(job);
      }
      expect(jobNosOf(others).length).toBe(100);
    });
    // One every tenth of a second at most, however long the adding took, and the first and the last beside them.
    const lastedMs = performance.now() - started;
    expect(others.length).toBeLessThanOrEqual(2 + lastedMs / 100);
  });

  test('a tenant with a few rows does not wait for more while a large import fills the queue', async () => {
    const yard = await openYard();
    await yard.add(8 * MAX_JOB_IDS, { bulk: true });
    const dispatcher = await yard.dispatcher();
    await eventually(async () => expect((await yard.waiting()).length).toBe(8));
    await yard.add(5, { tenant: 'ada', bulk: true });
    dispatcher.dispatch(yard.pathOf('ada'), 'encode');
    await eventually(async () => {
      const ofAda = (await yard.waiting()).filter(({ payload }) => payload.tenant === 'ada');
      expect(jobNosOf(ofAda).length).toBe(5);
    });
  });

  test('a job that was in flight at a crash goes alone', async () => {
    const yard = await openYard();
    await yard.add(3);
    const { store } = yard.pool.get(yard.pathOf('default'));
    store.write(() => store.prepare('UPDATE jobs SET suspect = 1 WHERE seq = 2').run());
    await yard.dispatcher();
    await eventually(async () => expect(jobNosOf(await yard.waiting()).length).toBe(3));
    const jobs = await yard.waiting();
    expect(jobs.filter(({ payload }) => payload.alone).map(({ payload }) => payload.jobNos)).toEqual([[2]]);
  });

  test('other dispatchers stand by while there is a leader, and take over when it falls silent', async () => {
    const yard = await openYard();
    const [leading, standingBy] = [createMetrics(), createMetrics()];
    const leader = await yard.dispatcher({ metrics: leading });
    await yard.add(10);
    leader.dispatch(yard.pathOf('default'), 'encode');
    await eventually(async () => expect(jobNosOf(await yard.waiting()).length).toBe(10));
    const other = await yard.dispatcher({ leads: false, metrics: standingBy });
    for (let round = 0; round < 5; round++) {
      await yard.add(10);
      for (const dispatcher of [other, leader]) dispatcher.dispatch(yard.pathOf('default'), 'encode');
      const rows = 20 + 10 * round;
      await eventually(async () => {
        for (const job of await yard.waiting()) await yard.pickUp(job);
        expect(await dispatchedRows(leading)).toBe(rows);
      });
    }
    expect(await dispatchedRows(standingBy)).toBe(0);

    await leader.close();
    await yard.add(10);
    await eventually(async () => expect(await dispatchedRows(standingBy)).toBe(10));
  });
});

test('while Redis is down rows wait in the ledger, and are handed out once when it comes', async ({ skip }) => {
  const redis = await startRedisServer({ down: true });
  if (redis === undefined) return skip('redis-server is not on the PATH');
  onTestFinished(() => redis.stop());
  const yard = await openYard(LEDGERS[0]![1], redis.url);
  await yard.add(3 * MAX_JOB_IDS);
  const metrics = createMetrics();
  const dispatcher = await yard.dispatcher({ metrics });
  await eventually(async () => expect((await metrics.dispatchFailures.get()).values[0]?.value).toBeGreaterThan(0));
  expect(dispatcher.state?.()).toEqual({ mode: 'redis', isUp: false });
  expect((await metrics.redisUp.get()).values[0]?.value).toBe(0);

  await redis.restart({ keepData: false });
  await eventually(async () => expect(jobNosOf(await yard.waiting()).length).toBe(3 * MAX_JOB_IDS));
  expect(new Set(jobNosOf(await yard.waiting())).size).toBe(3 * MAX_JOB_IDS);
  expect(dispatcher.state?.()).toEqual({ mode: 'redis', isUp: true });
  expect((await metrics.redisUp.get()).values[0]?.value).toBe(1);
});

test.each([
  [
    'OOM',
    (redis: Redis) => redis.config('SET', 'maxmemory', '1'),
    (redis: Redis) => redis.config('SET', 'maxmemory', '0'),
  ],
  ['READONLY', (redis: Redis) => redis.replicaof('127.0.0.1', 1), (redis: Redis) => redis.replicaof('NO', 'ONE')],
  [
    'NOPERM',
    (redis: Redis) => redis.call('ACL', 'SETUSER', 'default', '-set'),
    (redis: Redis) => redis.call('ACL', 'SETUSER', 'default', '+set'),
  ],
] as const)('a Redis that refuses writes (%s) is not up, and the log says why', async (reason, refuse, relent) => {
  const redis = canStartRedis() ? await startRedisServer() : undefined;
  if (redis === undefined) return;
  onTestFinished(() => redis.stop());
  const yard = await openYard(LEDGERS[0]![1], redis.url);
  const metrics = createMetrics();
  const log = createLog();
  const dispatcher = await yard.dispatcher({ metrics, logger: log.logger });
  const isUp = async () => {
    const [gauge] = (await metrics.redisUp.get()).values;
    expect(dispatcher.state?.()).toEqual({ mode: 'redis', isUp: gauge?.value === 1 });
    return gauge?.value === 1;
  };
  await eventually(async () => expect(await isUp()).toBe(true));
  const connection = redis.connect();
  onTestFinished(() => connection.disconnect());
  await refuse(connection);
  await eventually(async () => expect(await isUp()).toBe(false));
  // Nothing is asked of it meanwhile, and it stays so.
  const failures = async () => (await metrics.dispatchFailures.get()).values[0]?.value ?? 0;
  const before = await failures();
  await eventually(async () => expect(await failures()).toBeGreaterThan(before + 1));
  expect(await isUp()).toBe(false);
  expect(log.of('dispatch_failed')).toEqual([{ code: 'unavailable', reason: `Redis refused a command: ${reason}` }]);
  await relent(connection);
  await eventually(async () => expect(await isUp()).toBe(true));
});

test('a password that is wrong is named as the reason and not said', async ({ skip }) => {
  const redis = await startRedisServer();
  if (redis === undefined) return skip('redis-server is not on the PATH');
  onTestFinished(() => redis.stop());
  const connection = redis.connect();
  onTestFinished(() => connection.disconnect());
  const prefix = 'cairn-test';
  await connection.config('SET', 'requirepass', 'a long secret');
  const log = createLog();
  const url = redis.url.replace('redis://', 'redis://:another-secret@');
  const queues = await openStepQueues({ place: { kind: 'redis', redisUrl: url, prefix }, logger: log.logger });
  onTestFinished(() => queues.close());
  await expect(queues.haveForgotten()).rejects.toMatchObject({ code: 'unavailable' });
  await eventually(async () => expect(log.of('redis_lost')).toEqual([{ code: 'WRONGPASS' }]));
  expect(JSON.stringify(log.lines)).not.toContain('secret');
});

function createLog() {
  const lines: { readonly event: string; readonly fields: object }[] = [];
  const note = (fields: object, event: string) => void lines.push({ event, fields });
  const logger: Logger = { debug: note, info: note, warn: note, error: note };
  return {
    logger,
    lines,
    of: (event: string) => lines.filter((line) => line.event === event).map(({ fields }) => fields),
  };
}

/** As FLUSHALL does, but only to what this yard put there. */
async function forgetAll({ redisUrl, prefix }: Yard): Promise<void> {
  const redis = new Redis(redisUrl);
  const keys = await redis.keys(`${prefix}:*`);
  await redis.del(...keys);
  redis.disconnect();
}

async function dispatchedRows(metrics: Metrics): Promise<number> {
  const { values } = await metrics.dispatchedRows.get();
  return values.reduce((sum, { value }) => sum + value, 0);
}
