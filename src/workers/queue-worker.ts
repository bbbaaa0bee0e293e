import { setTimeout as pause } from 'node:timers/promises';
import type { Job, Worker } from 'bullmq';
import { connectRedis, openStepQueues, type BullmqOptions } from '../engine/adapters/bullmq-queues.ts';
import type { Config } from '../engine/config.ts';
import { openControlDatabase } from '../engine/control/open-control-database.ts';
import type { DispatchLedger } from '../engine/dispatch/dispatch-ports.ts';
import { createDispatcher } from '../engine/dispatch/dispatcher.ts';
import { createTenantFinder, ledgerOverStores, queuePrefix } from '../engine/dispatch/ledgers.ts';
import { createLookout } from '../engine/dispatch/lookout.ts';
import { EngineError, serialiseError } from '../engine/errors.ts';
import { failpoint } from '../engine/failpoint.ts';
import { QUEUE_NAMES, stepPayloadSchema, type QueueName } from '../engine/jobs.ts';
import type { Metrics } from '../engine/metrics.ts';
import { systemClock, type JobDispatcher, type Logger } from '../engine/ports.ts';
import { openTenant } from '../engine/tenant-file/open-tenant.ts';
import { createTenantPool } from '../engine/tenant-file/tenant-pool.ts';
import type { Tracing } from '../engine/tracing.ts';
import { keepTick } from './keep-tick.ts';
import { readersOf } from './readers.ts';
import { startThreadedExecutor, type ThreadedExecutor } from './threaded-executor.ts';

export interface QueueWorkerOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** Of this process; the executor has its own. */
  readonly metrics: Metrics;
  readonly tracing?: Tracing | null | undefined;
  /** All by default. */
  readonly queues?: readonly QueueName[] | undefined;
  /** Jobs of a step queue under way at once in this process; what suits the embedder by default. */
  readonly concurrency?: number | undefined;
}

/** Works off BullMQ's queues in this process. */
export interface QueueWorker {
  readonly executor: ThreadedExecutor;
  /** Takes no more jobs, finishes or hands back those under way. */
  drain(): Promise<void>;
}

/**
 * A job lives in Redis only while it runs here. The lock is longer than any step; a job whose worker died is not run again by BullMQ,
 * which would count a crash as its failure, but by the ledger, whose lease ends sooner.
 */
const LOCK_MS = 60_000;
const STALLS_ALLOWED = 0;
/** All that is left at the end is a word to Redis that the ledger can do without: a Redis that went first holds nobody up. */
const GOODBYE_MS = 2_000;

export async function startQueueWorker(options: QueueWorkerOptions): Promise<QueueWorker> {
  const { config, logger, metrics, tracing, queues = QUEUE_NAMES } = options;
  const redisUrl = config.REDIS_URL;
  if (redisUrl === undefined) throw new EngineError('invalid', 'REDIS_URL is not set: the queues are in Redis');
  const clock = systemClock;
  const control = openControlDatabase(config, clock);
  // For marks in the ledgers only, so no vector space is opened.
  const pool = createTenantPool(config.OM_OPEN_TENANTS, (path) =>
    openTenant(path, { role: 'worker', identity: null, now: clock.now() }),
  );
  const bullmq: BullmqOptions = { redisUrl, prefix: queuePrefix(pool, control), logger };
  const tenantOf = createTenantFinder(control);
  const lookout = createLookout({ openMost: config.OM_OPEN_TENANTS, leaseMs: config.OM_LEASE_MS, clock });
  const { embedsHere, OM_LEASE_MS: leaseMs } = config;
  const ledger = ledgerOverStores({ control, lookout, pool, clock, embedsHere, leaseMs });
  const dispatcher = createDispatcher({
    ledger,
    queues: await openStepQueues(bullmq),
    logger,
    metrics,
    tracing,
    leads: false,
    tenantOf,
  });
  const executor = startThreadedExecutor({ config, logger, linksAtOnce: queues.includes('link') });
  const [{ Worker: BullmqWorker, Queue: BullmqQueue }, connection] = await Promise.all([
    import('bullmq'),
    connectRedis(bullmq, { blocking: true }),
  ]);
  const handle = createHandler({
    executor,
    dispatcher,
    ledger,
    logger,
    pathOf: (tenant) => control.findTenantPath(tenant),
  });
  const workers = queues.map((name) => {
    const worker = new BullmqWorker(name, (job: Job) => handle(name, job), {
      connection,
      prefix: bullmq.prefix,
      concurrency: concurrencyOf(name, options),
      lockDuration: LOCK_MS,
      maxStalledCount: STALLS_ALLOWED,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    });
    worker.on('error', (error) => logger.debug({ code: error.name }, 'queue_error'));
    worker.on('stalled', () => metrics.stalledJobs.inc({ queue: name }));
    return worker;
  });
  const tick = queues.includes('maintain') ? await keepTick(BullmqQueue, bullmq) : undefined;

  return {
    executor,
    async drain() {
      tick?.close();
      await Promise.all(workers.map((worker: Worker) => worker.pause(true)));
      // The executor hands back what it has not begun; what BullMQ then waits for ends with the step under way.
      await executor.drain();
      await atMost(GOODBYE_MS, Promise.all(workers.map((worker: Worker) => worker.close())));
      await dispatcher.close();
      connection.disconnect();
      pool.close();
      control.close();
      logger.info({}, 'worker_drained');
    },
  };
}

async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  await Promise.race([work.catch(() => {}), pause(ms, undefined, { ref: false })]);
}

const COMPUTING: ReadonlySet<Config['OM_EMBEDDINGS']> = new Set(['synthetic', 'local', 'none']);

/** An embedder that computes keeps one thread busy with one job while another commits; a provider is asked several times at once. */
function concurrencyOf(name: QueueName, { config, concurrency }: QueueWorkerOptions): number {
  if (name === 'ingest') return readersOf(config);
  if (name !== 'encode') return 1;
  return concurrency ?? (COMPUTING.has(config.OM_EMBEDDINGS) ? 2 : config.OM_EMBED_CONCURRENCY + 1);
}

interface HandlerOptions {
  readonly executor: ThreadedExecutor;
  readonly dispatcher: JobDispatcher;
  readonly ledger: DispatchLedger;
  readonly logger: Logger;
  readonly pathOf: (tenant: string) => string | undefined;
}

/** What is done about a job of each queue. What goes wrong is in the ledger; BullMQ hears of nothing but the end. */
function createHandler({
  executor,
  dispatcher,
  ledger,
  logger,
  pathOf,
}: HandlerOptions): (queue: QueueName, job: Job) => Promise<void> {
  return async (queue, job) => {
    if (queue === 'maintain') return executor.maintain();
    const payload = stepPayloadSchema.parse(job.data);
    try {
      await executor.runStep(queue, payload);
      await failpoint('before-ack');
    } catch (error) {
      // The queue forgets them with this job: without their mark they are handed out again at once.
      logger.debug({ code: serialiseError(error).code }, 'jobs_handed_back');
      return ledger.giveBack(payload.tenant, payload.seqs);
    }
    const path = pathOf(payload.tenant);
    if (path !== undefined) dispatcher.dispatch(path, queue === 'encode' ? 'link' : 'encode');
  };
}
