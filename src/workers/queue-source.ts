import { setTimeout as pause } from 'node:timers/promises';
import type { Job, Worker } from 'bullmq';
import { type BullmqOptions, connectRedis, openStepQueues } from '../engine/adapters/index.ts';
import {
  type DispatchLedger,
  createDispatcher,
  createLookout,
  createTenantFinder,
  createTenantPool,
  failpoint,
  ledgerOverStores,
  openControlDatabase,
  openTenant,
  queuePrefix,
} from '../engine/for-queues.ts';
import type { TenantPool } from '../engine/for-workers.ts';
import {
  type Config,
  type ControlDatabase,
  EngineError,
  type JobDispatcher,
  type Logger,
  type Metrics,
  QUEUE_NAMES,
  type QueueName,
  type Tracing,
  serialiseError,
  stepPayloadSchema,
  systemClock,
} from '../engine/index.ts';
import type { JobSource, RunWork } from './job-source.ts';
import { keepTick } from './keep-tick.ts';
import { readersOf } from './readers.ts';

export interface QueueSourceOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracing?: Tracing | null | undefined;
  /** The queues whose jobs are taken; all by default. */
  readonly queues?: readonly QueueName[] | undefined;
  /** Most `encode` jobs that are out at once; by default the number that suits the embedder. */
  readonly concurrency?: number | undefined;
}

/** Lifetime of BullMQ's lock on a job (ms): longer than any step takes to let go of the thread that renews it. */
const LOCK_MS = 60_000;
/**
 * Times that BullMQ runs a stalled job again. It runs none, as it would count a crash as the job's failure: the ledger
 * does, whose lease ends sooner.
 */
const STALLS_ALLOWED = 0;
/**
 * Longest wait for Redis at the end (ms): the ledger can do without BullMQ's last words, and a Redis that went first
 * holds nobody up.
 */
const GOODBYE_MS = 2_000;

/**
 * Takes work from BullMQ's queues in Redis, and keeps a dispatcher that fills them while no API does. A job lives in
 * Redis only while it is out; what becomes of it is in the ledger.
 * @throws EngineError `invalid` without `REDIS_URL`
 */
export async function openQueueSource(options: QueueSourceOptions): Promise<JobSource> {
  const { config, queues = QUEUE_NAMES } = options;
  const control = openControlDatabase(config, systemClock);
  // These connections write nothing but marks, so no vector space is opened.
  const pool = createTenantPool(config.OM_OPEN_TENANTS, (path) =>
    openTenant(path, { role: 'worker', identity: null, now: systemClock.now() }),
  );
  const bullmq = describeQueues(options, queuePrefix(pool, control));
  const ledger = openLedger(options, { control, pool });
  const dispatcher = await openDispatcher(options, { control, ledger, bullmq });
  const [{ Worker: BullmqWorker, Queue }, connection] = await Promise.all([
    import('bullmq'),
    connectRedis(bullmq, { blocking: true }),
  ]);
  let workers: Worker[] = [];
  let tick: ReturnType<typeof keepTick> | undefined;

  return {
    start(run) {
      const linksAtOnce = queues.includes('link');
      const handle = createHandler({ ...options, run, linksAtOnce, control, ledger, dispatcher });
      workers = queues.map((name) => {
        const worker = new BullmqWorker(name, (job: Job) => handle(name, job), {
          connection,
          prefix: bullmq.prefix,
          concurrency: slotsOf(name, options),
          lockDuration: LOCK_MS,
          maxStalledCount: STALLS_ALLOWED,
          removeOnComplete: { count: 0 },
          removeOnFail: { count: 0 },
        });
        worker.on('error', (error) => options.logger.debug({ code: error.name }, 'queue_error'));
        worker.on('stalled', () => options.metrics.stalledJobs.inc({ queue: name }));
        return worker;
      });
      if (queues.includes('maintain')) tick = keepTick(Queue, bullmq);
    },
    async pause() {
      (await tick)?.close();
      await Promise.all(workers.map((worker) => worker.pause(true)));
    },
    async close() {
      await atMost(GOODBYE_MS, Promise.all(workers.map((worker) => worker.close())));
      await dispatcher.close();
      connection.disconnect();
      pool.close();
      control.close();
    },
  };
}

async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  await Promise.race([work.catch(() => {}), pause(ms, undefined, { ref: false })]);
}

function describeQueues({ config, logger }: QueueSourceOptions, prefix: string): BullmqOptions {
  const { REDIS_URL: redisUrl } = config;
  if (redisUrl === undefined) throw new EngineError('invalid', 'REDIS_URL is not set: the queues are in Redis');
  return { redisUrl, prefix, logger };
}

function openLedger(
  { config }: QueueSourceOptions,
  { control, pool }: { readonly control: ControlDatabase; readonly pool: TenantPool },
): DispatchLedger {
  const { embedsHere, OM_LEASE_MS: leaseMs, OM_OPEN_TENANTS: openMost } = config;
  const lookout = createLookout({ openMost, leaseMs, clock: systemClock });
  return ledgerOverStores({ control, lookout, pool, clock: systemClock, embedsHere, leaseMs });
}

async function openDispatcher(
  { logger, metrics, tracing }: QueueSourceOptions,
  parts: { readonly control: ControlDatabase; readonly ledger: DispatchLedger; readonly bullmq: BullmqOptions },
): Promise<JobDispatcher> {
  const queues = await openStepQueues(parts.bullmq);
  const tenantOf = createTenantFinder(parts.control);
  return createDispatcher({ ledger: parts.ledger, queues, logger, metrics, tracing, leads: false, tenantOf });
}

/**
 * Jobs of a queue that are out at once: an embedder that computes has one busy while another commits, a provider takes
 * several calls.
 */
function slotsOf(name: QueueName, { config, concurrency }: QueueSourceOptions): number {
  if (name === 'ingest') return readersOf(config);
  if (name !== 'encode') return 1;
  return concurrency ?? (config.embedsHere ? 2 : config.OM_EMBED_CONCURRENCY + 1);
}

interface HandlerOptions {
  readonly run: RunWork;
  readonly linksAtOnce: boolean;
  readonly control: ControlDatabase;
  readonly ledger: DispatchLedger;
  readonly dispatcher: JobDispatcher;
  readonly logger: Logger;
}

/** Turns BullMQ's jobs into work. What goes wrong with it is in the ledger; BullMQ hears of nothing but the end. */
function createHandler(options: HandlerOptions): (queue: QueueName, job: Job) => Promise<void> {
  const { run, linksAtOnce, control, ledger, dispatcher, logger } = options;
  return async (queue, job) => {
    if (queue === 'maintain') {
      await run({ kind: 'tick' });
      return;
    }
    const { tenant, jobNos, alone } = stepPayloadSchema.parse(job.data);
    const path = control.findTenantPath(tenant);
    if (path === undefined) return; // The tenant was erased, and its ledger with it.
    try {
      await run({ kind: 'named', path, step: queue, jobNos, alone, linksAtOnce });
      await failpoint('before-ack');
    } catch (error) {
      // The queue forgets the rows with this job: without their mark they are handed out again at once.
      logger.debug({ code: serialiseError(error).code }, 'jobs_handed_back');
      return ledger.giveBack(tenant, jobNos);
    }
    dispatcher.dispatch(path, queue === 'encode' ? 'link' : 'encode');
  };
}
