import { setTimeout as pause } from 'node:timers/promises';
import type { Job, Worker } from 'bullmq';
import { openQueueLink, openStepQueues, type QueueLinkOptions } from '../engine/adapters/index.ts';
import {
  type DispatchLedger,
  createDispatcher,
  createTenantFinder,
  createTenantPool,
  failpoint,
  ledgerOverStores,
  openControlDatabase,
  openLedgerPoller,
  openTenant,
  placeOf,
  queuePlaceOf,
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
  /** Where the queues are; by default where the settings say. */
  readonly place?: QueueLinkOptions['place'];
  /** The queues from which jobs are taken; all by default. */
  readonly queues?: readonly QueueName[] | undefined;
  /**
   * Greatest number of jobs of the queue `encode` that are worked on at once; by default 2 for an embedder that
   * computes here, and OM_EMBED_CONCURRENCY + 1 for a provider.
   */
  readonly concurrency?: number | undefined;
}

/** Duration of BullMQ's lock on a job (ms). No step blocks the thread that renews it for as long as that. */
const LOCK_MS = 60_000;
/**
 * Number of times that BullMQ runs a stalled job again. It is 0, since the ledger itself makes such jobs due again when
 * their leases end, and does not count a worker's crash as a failure of the job.
 */
const STALLS_ALLOWED = 0;
/**
 * Longest wait for BullMQ's workers to close (ms). The ledger needs nothing that they would still send, and a server
 * that stopped first must not hold up the shutdown.
 */
const GOODBYE_MS = 2_000;

/**
 * Opens a source that takes work from BullMQ's queues, in Redis or PostgreSQL. It also runs a dispatcher that fills the
 * queues while no API process does. A job is in a queue only until it is done; its result is in the ledger.
 * @throws EngineError `invalid` without `REDIS_URL` and `OM_DATABASE_URL`; `unavailable` if the control database cannot
 *   be reached; of PostgreSQL as `openQueueLink` says
 */
export async function openQueueSource(options: QueueSourceOptions): Promise<JobSource> {
  const { config, queues = QUEUE_NAMES } = options;
  const control = openControlDatabase(config, systemClock);
  // This thread may serve requests. The thread that does the work ends broken-off moves, too.
  control.settleMovesBy(async () => {});
  // These connections write nothing but which jobs were handed out to a queue, so no vector space is opened.
  const pool = createTenantPool(config.OM_OPEN_TENANTS, (path) =>
    openTenant(path, { place: placeOf(config, path), role: 'worker', identity: null, now: systemClock.now() }),
  );
  const place = options.place ?? queuePlaceOf(config, { pool, control });
  if (place === null) throw new EngineError('invalid', 'there are no queues without REDIS_URL and OM_DATABASE_URL');
  const at = { place, logger: options.logger };
  const ledger = openLedger(options, { control, pool });
  const dispatcher = await openDispatcher(options, { control, ledger, at });
  const link = await openQueueLink(at, { blocking: true });
  const ticks = await openQueueLink(at, { blocking: false });
  let workers: Worker[] = [];
  let tick: ReturnType<typeof keepTick> | undefined;

  return {
    start(run) {
      const linksAtOnce = queues.includes('link');
      const handle = createHandler({ ...options, run, linksAtOnce, control, ledger, dispatcher });
      workers = queues.map((name) => {
        const worker = link.openWorker(name, (job: Job) => handle(name, job), {
          concurrency: slotsOf(name, options),
          lockDuration: LOCK_MS,
          maxStalledCount: STALLS_ALLOWED,
          removeOnComplete: { count: 0 },
          removeOnFail: { count: 0 },
        });
        worker.on('stalled', () => options.metrics.stalledJobs.inc({ queue: name }));
        return worker;
      });
      if (queues.includes('maintain')) tick = keepTick(ticks, options.logger);
    },
    async pause() {
      await tick?.close();
      await Promise.all(workers.map((worker) => worker.pause(true)));
    },
    async close() {
      await atMost(GOODBYE_MS, Promise.all(workers.map((worker) => worker.close())));
      await dispatcher.close();
      await ticks.close();
      await link.close();
      pool.close();
      control.close();
    },
  };
}

async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  await Promise.race([work.catch(() => {}), pause(ms, undefined, { ref: false })]);
}

function openLedger(
  { config, logger, metrics }: QueueSourceOptions,
  { control, pool }: { readonly control: ControlDatabase; readonly pool: TenantPool },
): DispatchLedger {
  const { embedsHere, OM_LEASE_MS: leaseMs } = config;
  const poller = openLedgerPoller({ config, clock: systemClock, logger, metrics });
  return ledgerOverStores({ control, poller, pool, clock: systemClock, embedsHere, leaseMs });
}

async function openDispatcher(
  { logger, metrics, tracing }: QueueSourceOptions,
  parts: { readonly control: ControlDatabase; readonly ledger: DispatchLedger; readonly at: QueueLinkOptions },
): Promise<JobDispatcher> {
  const queues = await openStepQueues(parts.at);
  const tenantOf = createTenantFinder(parts.control);
  return createDispatcher({
    ledger: parts.ledger,
    queues,
    server: parts.at.place.kind,
    logger,
    metrics,
    tracing,
    leads: false,
    tenantOf,
  });
}

/**
 * Returns how many jobs of a queue are worked on at once. For `encode` it is `concurrency` if that is set; else 2 with
 * an embedder that computes here, as one job computes while the other commits, and OM_EMBED_CONCURRENCY + 1 with a
 * provider, which takes several calls at once. For `ingest` it is the number of readers (`readersOf`), and for other
 * queues 1.
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

/**
 * Makes the function that turns BullMQ's jobs into work. After the work, jobs that are due at the next step are
 * dispatched. If the work fails, its jobs are handed back to the ledger, and BullMQ takes the job for done. Jobs of a
 * tenant that was erased are ignored.
 */
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
      // BullMQ drops its job, so its rows are no longer marked as handed out: then they are handed out again at once.
      logger.debug({ code: serialiseError(error).code }, 'jobs_handed_back');
      return ledger.giveBack(tenant, jobNos);
    }
    dispatcher.dispatch(path, queue === 'encode' ? 'link' : 'encode');
  };
}
