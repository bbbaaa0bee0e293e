import { once } from 'node:events';
import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { StepQueues } from '../dispatch/dispatcher.ts';
import { EngineError } from '../errors.ts';
import type { QueuedStep, QueueName } from '../jobs.ts';
import type { Metrics } from '../metrics.ts';
import type { Logger } from '../ports.ts';

export interface BullmqOptions {
  readonly redisUrl: string;
  /** Keeps the queues of one data folder apart from those of another in the same Redis. */
  readonly prefix: string;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** A call to Redis that takes longer has failed: BullMQ itself would wait for ever. */
const CALL_MOST_MS = 2_000;
/** A dispatcher that fell silent for so long does not lead any more. */
const LEADS_MS = 2_000;
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
  { blocking }: { blocking: boolean },
): Promise<Redis> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(redisUrl, {
    maxRetriesPerRequest: blocking ? null : 1,
    enableOfflineQueue: blocking,
    connectTimeout: CALL_MOST_MS,
    retryStrategy: (attempt) => Math.min(2_000, 50 * 2 ** Math.min(attempt, 6)),
  });
  let down = false;
  redis.on('error', (error: Error & { code?: string }) => {
    // One line an outage. The message of an error may hold the URL, which may hold a password.
    if (!down) logger.warn({ code: error.code ?? error.name }, 'redis_lost');
    down = true;
  });
  redis.on('ready', () => {
    if (down) logger.info({}, 'redis_back');
    down = false;
  });
  return redis;
}

/** The step queues of BullMQ, for a dispatcher. Connecting goes on in the background: a Redis that is down delays nothing here. */
export async function openStepQueues(options: BullmqOptions): Promise<StepQueues> {
  const [{ Queue }, redis] = await Promise.all([import('bullmq'), connectRedis(options, { blocking: false })]);
  redis.on('ready', () => void warnOfSettings(redis, options.logger));
  const { redisUp } = options.metrics;
  redisUp.set(redis.status === 'ready' ? 1 : 0);
  redis.on('ready', () => redisUp.set(1));
  redis.on('close', () => redisUp.set(0));
  const queues = new Map<QueuedStep, Queue>();
  const marker = `${options.prefix}:known`;
  const leader = `${options.prefix}:leader`;

  /** A queue that could not make itself ready never will, so after a failure it is made anew. */
  async function call<T>(step: QueuedStep, work: (queue: Queue) => Promise<T>): Promise<T> {
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
    haveForgotten: async () => (await bounded(redis, () => redis.set(marker, '1', 'NX'))) === 'OK',
    lead: async () => void (await bounded(redis, () => redis.set(leader, '1', 'PX', LEADS_MS))),
    haveLeader: async () => (await bounded(redis, () => redis.exists(leader))) > 0,
    isUp: () => redis.status === 'ready',
    async close() {
      redis.disconnect();
    },
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
    throw new EngineError('unavailable', 'Redis refused a command', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
