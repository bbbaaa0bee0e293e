import { once } from 'node:events';
import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { StepQueues } from '../dispatch/dispatch-ports.ts';
import { EngineError } from '../errors.ts';
import { QUEUE_NAMES, type QueueName } from '../jobs.ts';
import type { Logger } from '../ports.ts';

export interface BullmqOptions {
  /** URL of the Redis server. It may contain a password, so it is never logged. */
  readonly redisUrl: string;
  /** Prefix of all keys in Redis. It separates the queues of several data folders in one Redis. */
  readonly prefix: string;
  readonly logger: Logger;
}

/** Time limit of a call to Redis (ms). Without it, BullMQ would wait forever. */
const MAX_CALL_MS = 2_000;
/** Time for which a dispatcher counts as the leader after it called `lead` (ms). */
const LEADS_MS = 2_000;
/** Time for which the schedules count as maintained after a worker has said so (`noteMaintained`), in ms. */
const UNMAINTAINED_MS = 60_000;
/** Priority of bulk jobs in BullMQ. Workers take them after all interactive jobs, which have no priority number. */
const BULK_PRIORITY = 10;

/**
 * Number of events that BullMQ keeps in its stream. Nobody reads them, because the job ledger (a table of each tenant's
 * file) has the history.
 */
const EVENTS_KEPT = 100;

/**
 * BullMQ's options for every job. BullMQ neither retries nor keeps jobs, because the job ledger in the tenant's file
 * counts attempts and keeps outcomes.
 */
export const JOB_OPTIONS = { attempts: 1, removeOnComplete: true, removeOnFail: true } as const;

/**
 * Creates a connection to Redis. It connects in the background, and again after each loss. One line is logged for each
 * outage.
 * @param blocking true for a worker, whose commands wait until Redis is back; false for callers that can go on without
 *   Redis: their commands fail at once while Redis is down
 * @param maxCommandMs time limit of a command (ms); none by default
 */
export async function connectRedis(
  { redisUrl, logger }: Pick<BullmqOptions, 'redisUrl' | 'logger'>,
  { blocking, maxCommandMs }: { readonly blocking: boolean; readonly maxCommandMs?: number },
): Promise<Redis> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(redisUrl, {
    maxRetriesPerRequest: blocking ? null : 1,
    enableOfflineQueue: blocking,
    connectTimeout: MAX_CALL_MS,
    ...(maxCommandMs === undefined ? {} : { commandTimeout: maxCommandMs }),
    retryStrategy: (attempt) => Math.min(2_000, 50 * 2 ** Math.min(attempt, 6)),
  });
  let down = false;
  redis.on('error', (error: Error & { code?: string }) => {
    // One line is logged per outage. An error's message may hold the URL, which may hold a password.
    if (!down) logger.warn({ code: error.code ?? reasonOf(error) }, 'redis_lost');
    down = true;
  });
  redis.on('ready', () => {
    if (down) logger.info({}, 'redis_back');
    down = false;
  });
  return redis;
}

/** Counts the jobs in the queues, for metrics. */
export interface QueueCounter {
  /** Returns the number of jobs of every queue in each of `COUNTED_STATES`; undefined while Redis cannot be reached. */
  counts(): Promise<QueuedJobs[] | undefined>;
}

/** The number of jobs in one queue that are in one state. */
interface QueuedJobs {
  readonly queue: QueueName;
  /** One of `COUNTED_STATES`: `waiting`, `prioritized`, `active`, `delayed`. */
  readonly state: string;
  readonly jobs: number;
}

/**
 * BullMQ's states in which jobs are counted: `waiting` has interactive jobs, `prioritized` has bulk jobs. Ended jobs
 * are not kept.
 */
const COUNTED_STATES = ['waiting', 'prioritized', 'active', 'delayed'] as const;

/**
 * Opens BullMQ's queues for a dispatcher, one for each step of the work (encode, link …). It connects in the
 * background, so that it does not wait for a Redis that is down. Each method that calls Redis rejects with EngineError
 * `unavailable` within 2 s (`MAX_CALL_MS`); only `counts` never rejects.
 */
export async function openStepQueues(options: BullmqOptions): Promise<StepQueues & QueueCounter> {
  const [{ Queue }, redis] = await Promise.all([import('bullmq'), connectRedis(options, { blocking: false })]);
  redis.on('ready', () => void warnOfSettings(redis, options.logger));
  const queues = new Map<QueueName, Queue>();
  const marker = `${options.prefix}:known`;
  const leader = `${options.prefix}:leader`;
  const maintained = maintainedKey(options);
  /**
   * Whether this Redis is new to this process, or has just lost its data, so that a worker's note (`noteMaintained`)
   * may be missing.
   */
  let isNew = true;

  /**
   * Calls BullMQ's queue of a step. After a failure, the queue object is created again at the next call, as a queue
   * object that failed to get ready never recovers.
   */
  async function call<T>(step: QueueName, work: (queue: Queue) => Promise<T>): Promise<T> {
    try {
      return await bounded(redis, () => {
        let queue = queues.get(step);
        if (queue === undefined) queues.set(step, (queue = openQueue(Queue, step, redis, options)));
        return work(queue);
      });
    } catch (error) {
      queues.delete(step);
      throw error;
    }
  }

  return {
    async waiting(step) {
      const counts = await call(step, (queue) => queue.getJobCounts('waiting', 'prioritized'));
      return { interactive: counts['waiting'] ?? 0, bulk: counts['prioritized'] ?? 0 };
    },
    async add(step, jobs) {
      const added = jobs.map(({ name, bulk, payload }) => ({
        name: step,
        data: payload,
        opts: { ...JOB_OPTIONS, jobId: name, ...(bulk ? { priority: BULK_PRIORITY } : {}) },
      }));
      await call(step, (queue) => queue.addBulk(added));
    },
    // If the marker could be set, it was gone, and with it everything that the queues held.
    async haveForgotten() {
      const wasGone = (await bounded(redis, () => redis.set(marker, '1', 'NX'))) === 'OK';
      isNew ||= wasGone;
      return wasGone;
    },
    async areMaintained() {
      if (isNew) await bounded(redis, () => redis.set(maintained, '1', 'PX', UNMAINTAINED_MS, 'NX'));
      isNew = false;
      return (await bounded(redis, () => redis.exists(maintained))) > 0;
    },
    lead: async () => void (await bounded(redis, () => redis.set(leader, '1', 'PX', LEADS_MS))),
    haveLeader: async () => (await bounded(redis, () => redis.exists(leader))) > 0,
    isUp: () => redis.status === 'ready',
    async counts() {
      if (redis.status !== 'ready') return undefined;
      try {
        return await countJobs((name) => call(name, (queue) => queue.getJobCounts(...COUNTED_STATES)));
      } catch {
        return undefined; // Redis was lost just now; the dispatcher reports that.
      }
    },
    async close() {
      redis.disconnect();
    },
  };
}

async function countJobs(countsOf: (name: QueueName) => Promise<Record<string, number>>): Promise<QueuedJobs[]> {
  const counted = await Promise.all(
    QUEUE_NAMES.map(async (name) => {
      const counts = await countsOf(name);
      return COUNTED_STATES.map((state) => ({ queue: name, state, jobs: counts[state] ?? 0 }));
    }),
  );
  return counted.flat();
}

/**
 * Opens BullMQ's own queue objects, one for each of `QUEUE_NAMES`, for a dashboard that calls them directly. Their
 * commands fail after 2 s (`MAX_CALL_MS`).
 * @throws EngineError `unavailable` if Redis is down or does not get ready within 2 s
 */
export async function openQueuesToShow(
  options: BullmqOptions,
): Promise<{ readonly queues: readonly Queue[]; isUp(): boolean; close(): void }> {
  const [{ Queue }, redis] = await Promise.all([
    import('bullmq'),
    connectRedis(options, { blocking: false, maxCommandMs: MAX_CALL_MS }),
  ]);
  try {
    await bounded(redis, async () => {});
  } catch (error) {
    redis.disconnect();
    throw error;
  }
  return {
    queues: QUEUE_NAMES.map((name) => openQueue(Queue, name, redis, options)),
    isUp: () => redis.status === 'ready',
    close: () => redis.disconnect(),
  };
}

/** Opens one queue over a connection, which the caller closes. The queue's errors are logged at level debug. */
export function openQueue(
  QueueClass: typeof Queue,
  name: QueueName,
  connection: Redis,
  { prefix, logger }: BullmqOptions,
): Queue {
  const queue = new QueueClass(name, { connection, prefix, streams: { events: { maxLen: EVENTS_KEPT } } });
  queue.on('error', (error) => logger.debug({ code: error.name }, 'queue_error'));
  return queue;
}

/**
 * Writes a note to Redis that a worker maintains the schedules. The note expires after a minute (`UNMAINTAINED_MS`), so
 * it must be written again before.
 */
export async function noteMaintained(redis: Redis, options: Pick<BullmqOptions, 'prefix'>): Promise<void> {
  await redis.set(maintainedKey(options), '1', 'PX', UNMAINTAINED_MS);
}

function maintainedKey({ prefix }: Pick<BullmqOptions, 'prefix'>): string {
  return `${prefix}:maintained`;
}

/**
 * Logs warnings of Redis settings with which jobs may be evicted or lost. Lost jobs cost only time, as the job ledger
 * keeps all work. Nothing is logged if Redis forbids reading its settings.
 */
async function warnOfSettings(redis: Redis, logger: Logger): Promise<void> {
  try {
    const [, policy] = await redis.config('GET', 'maxmemory-policy');
    if (policy !== undefined && policy !== 'noeviction')
      logger.warn({ setting: 'maxmemory-policy', value: policy, expected: 'noeviction' }, 'redis_settings');
    const [, appendOnly] = await redis.config('GET', 'appendonly');
    if (appendOnly !== undefined && appendOnly !== 'yes')
      logger.warn({ setting: 'appendonly', value: appendOnly, expected: 'yes' }, 'redis_settings');
  } catch {
    // Some hosting providers forbid the CONFIG command.
  }
}

/**
 * Calls Redis as soon as the connection is ready.
 * @throws EngineError `unavailable` if Redis is down, refuses the call, or does not get ready and answer within 2 s
 */
export async function bounded<T>(redis: Redis, call: () => Promise<T>): Promise<T> {
  return within(MAX_CALL_MS, async () => {
    if (redis.status !== 'ready') await once(redis, 'ready');
    return call();
  });
}

async function within<T>(ms: number, work: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new EngineError('unavailable', `Redis did not answer within ${ms} ms`)), ms);
  });
  const answer = work();
  answer.catch(() => {}); // It may fail after the timeout, when nobody waits any more.
  try {
    return await Promise.race([answer, timeout]);
  } catch (error) {
    if (error instanceof EngineError) throw error;
    throw new EngineError('unavailable', `Redis refused a command: ${reasonOf(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

const REFUSALS = /\b(OOM|READONLY|NOAUTH|WRONGPASS|NOPERM|LOADING|MISCONF|BUSY|MASTERDOWN|CLUSTERDOWN|MAXCLIENTS)\b/;

/**
 * Returns the reason of an error as one word: Redis's own word, else the error's code or name. The error's message is
 * not used, since it may contain the URL with a password.
 */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.message.includes('max number of clients')) return 'MAXCLIENTS';
  return REFUSALS.exec(error.message)?.[1] ?? ('code' in error ? String(error.code) : error.name);
}
