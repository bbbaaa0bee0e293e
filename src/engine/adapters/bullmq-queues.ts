import { once } from 'node:events';
import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { StepQueues } from '../dispatch/dispatch-ports.ts';
import { EngineError } from '../errors.ts';
import { QUEUE_NAMES, type QueueName } from '../jobs.ts';
import type { Logger } from '../ports.ts';

export interface BullmqOptions {
  readonly redisUrl: string;
  /** Keeps the queues of one data folder apart from those of another in the same Redis. */
  readonly prefix: string;
  readonly logger: Logger;
}

/** A call to Redis that takes longer has failed: BullMQ itself would wait for ever. */
const CALL_MOST_MS = 2_000;
/** A dispatcher that fell silent for so long does not lead any more. */
const LEADS_MS = 2_000;
/** So long nobody need keep the schedules before it is said. */
const UNMAINTAINED_MS = 60_000;
/** Bulk jobs are picked up after all that have no priority. */
const BULK_PRIORITY = 10;

/** Nobody reads BullMQ's own stream of events; the ledger has the timeline. */
const EVENTS_KEPT = 100;

/** Options of every job: the ledger counts attempts and keeps what became of a job. */
export const JOB_OPTIONS = { attempts: 1, removeOnComplete: true, removeOnFail: true } as const;

/**
 * A connection that fails at once while Redis is down: for callers that have something better to do than wait.
 * `blocking` makes one for a worker, which waits for ever and resumes by itself.
 */
export async function connectRedis(
  { redisUrl, logger }: Pick<BullmqOptions, 'redisUrl' | 'logger'>,
  { blocking, commandMostMs }: { readonly blocking: boolean; readonly commandMostMs?: number },
): Promise<Redis> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(redisUrl, {
    maxRetriesPerRequest: blocking ? null : 1,
    enableOfflineQueue: blocking,
    connectTimeout: CALL_MOST_MS,
    ...(commandMostMs === undefined ? {} : { commandTimeout: commandMostMs }),
    retryStrategy: (attempt) => Math.min(2_000, 50 * 2 ** Math.min(attempt, 6)),
  });
  let down = false;
  redis.on('error', (error: Error & { code?: string }) => {
    // One line an outage. The message of an error may hold the URL, which may hold a password.
    if (!down) logger.warn({ code: error.code ?? reasonOf(error) }, 'redis_lost');
    down = true;
  });
  redis.on('ready', () => {
    if (down) logger.info({}, 'redis_back');
    down = false;
  });
  return redis;
}

/** What the queues hold, for metrics. */
export interface QueueCounter {
  /** Of every queue; undefined while Redis is not reached. */
  counts(): Promise<{ readonly queue: QueueName; readonly state: string; readonly jobs: number }[] | undefined>;
}

/** States that are counted: what has ended is not kept. */
const COUNTED_STATES = ['waiting', 'prioritized', 'active', 'delayed'] as const;

/** The step queues of BullMQ, for a dispatcher. Connecting goes on in the background: a Redis that is down delays nothing here. */
export async function openStepQueues(options: BullmqOptions): Promise<StepQueues & QueueCounter> {
  const [{ Queue }, redis] = await Promise.all([import('bullmq'), connectRedis(options, { blocking: false })]);
  redis.on('ready', () => void warnOfSettings(redis, options.logger));
  const queues = new Map<QueueName, Queue>();
  const marker = `${options.prefix}:known`;
  const leader = `${options.prefix}:leader`;
  const maintained = maintainedKey(options);
  /** A Redis that this process or anybody saw just now may not know the workers yet. */
  let isNew = true;

  /** A queue that could not make itself ready never will, so after a failure it is made anew. */
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
    // Whoever sets the mark has found it gone, and with it all that the queues knew.
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
        const counted = await Promise.all(
          QUEUE_NAMES.map(async (name) => {
            const counts = await call(name, (queue) => queue.getJobCounts(...COUNTED_STATES));
            return COUNTED_STATES.map((state) => ({ queue: name, state, jobs: counts[state] ?? 0 }));
          }),
        );
        return counted.flat();
      } catch {
        return undefined; // Lost just now, which the dispatcher says.
      }
    },
    async close() {
      redis.disconnect();
    },
  };
}

/**
 * All queues, for somebody who looks at them by whatever BullMQ offers: each command fails after two seconds.
 * @throws EngineError `unavailable` soon while Redis is down
 */
export async function openQueuesToShow(
  options: BullmqOptions,
): Promise<{ readonly queues: readonly Queue[]; isUp(): boolean; close(): void }> {
  const [{ Queue }, redis] = await Promise.all([
    import('bullmq'),
    connectRedis(options, { blocking: false, commandMostMs: CALL_MOST_MS }),
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

/** Says that a worker keeps the schedules, to be repeated every few seconds. */
export async function noteMaintained(redis: Redis, options: Pick<BullmqOptions, 'prefix'>): Promise<void> {
  await redis.set(maintainedKey(options), '1', 'PX', UNMAINTAINED_MS);
}

function maintainedKey({ prefix }: Pick<BullmqOptions, 'prefix'>): string {
  return `${prefix}:maintained`;
}

/** A Redis that forgets costs time, never work; one that evicts or denies what it was asked to hold is set up for something else. */
async function warnOfSettings(redis: Redis, logger: Logger): Promise<void> {
  try {
    const [, policy] = await redis.config('GET', 'maxmemory-policy');
    if (policy !== undefined && policy !== 'noeviction')
      logger.warn({ setting: 'maxmemory-policy', value: policy, expected: 'noeviction' }, 'redis_settings');
    const [, appendOnly] = await redis.config('GET', 'appendonly');
    if (appendOnly !== undefined && appendOnly !== 'yes')
      logger.warn({ setting: 'appendonly', value: appendOnly, expected: 'yes' }, 'redis_settings');
  } catch {
    // Some hosts forbid CONFIG.
  }
}

/** @throws EngineError `unavailable` soon while Redis is down, or when the call takes too long */
export async function bounded<T>(redis: Redis, call: () => Promise<T>): Promise<T> {
  return within(CALL_MOST_MS, async () => {
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
  answer.catch(() => {}); // It may fail after nobody waits any more.
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

/** Only words from closed sets: the message of an error may hold the URL, which may hold a password. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.message.includes('max number of clients')) return 'MAXCLIENTS';
  return REFUSALS.exec(error.message)?.[1] ?? ('code' in error ? String(error.code) : error.name);
}
