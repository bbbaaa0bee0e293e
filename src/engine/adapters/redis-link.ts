import { once } from 'node:events';
import type { Redis } from 'ioredis';
import type { QueuePlace } from '../dispatch/dispatch-ports.ts';
import type { Logger } from '../ports.ts';
import { createOutageLog, EVENTS_KEPT, type LinkUse, MAX_CALL_MS, type QueueLink, withinLimit } from './queue-link.ts';

/**
 * Creates a connection to Redis. It connects in the background, and again after each loss. One line is logged for each
 * outage, and one for its end.
 */
export async function connectRedis(
  { redisUrl, logger }: { readonly redisUrl: string; readonly logger: Logger },
  { blocking, maxCommandMs }: LinkUse,
): Promise<Redis> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(redisUrl, {
    maxRetriesPerRequest: blocking ? null : 1,
    enableOfflineQueue: blocking,
    connectTimeout: MAX_CALL_MS,
    ...(maxCommandMs === undefined ? {} : { commandTimeout: maxCommandMs }),
    retryStrategy: (attempt) => Math.min(2_000, 50 * 2 ** Math.min(attempt, 6)),
  });
  const outage = createOutageLog(logger, ['redis_lost', 'redis_back']);
  // An error's message may hold the URL, which may hold a password.
  redis.on('error', (error: Error) => outage.lost(reasonOf(error)));
  redis.on('ready', () => outage.back());
  return redis;
}

/**
 * Opens a link to the queues in Redis. It connects in the background, so that a Redis that is down is not waited for.
 */
export async function openRedisLink(
  { redisUrl, prefix }: Extract<QueuePlace, { kind: 'redis' }>,
  logger: Logger,
  use: LinkUse,
): Promise<QueueLink> {
  const [{ Queue, Worker }, redis] = await Promise.all([import('bullmq'), connectRedis({ redisUrl, logger }, use)]);
  if (use.warnsOfSettings) redis.on('ready', () => void warnOfSettings(redis, logger));
  const keyOf = (mark: string) => `${prefix}:${mark}`;
  const place = { connection: redis, prefix };
  return {
    isUp: () => redis.status === 'ready',
    whenReady: (listener) => void redis.once('ready', listener),
    bounded: (call) =>
      withinLimit(
        async () => {
          if (redis.status !== 'ready') await once(redis, 'ready');
          return call();
        },
        { server: 'Redis', reasonOf },
      ),
    openQueue(name) {
      const queue = new Queue(name, { ...place, streams: { events: { maxLen: EVENTS_KEPT } } });
      queue.on('error', (error) => logger.debug({ code: error.name }, 'queue_error'));
      return queue;
    },
    addJobs: async (queue, jobs) => void (await queue.addBulk(jobs)),
    openWorker(name, handle, options) {
      const worker = new Worker(name, handle, { ...options, ...place });
      worker.on('error', (error) => logger.debug({ code: error.name }, 'queue_error'));
      return worker;
    },
    setMark: async (mark, ms) => void (await redis.set(keyOf(mark), '1', 'PX', ms)),
    setMissingMark: async (mark, ms) =>
      (await (ms === null ? redis.set(keyOf(mark), '1', 'NX') : redis.set(keyOf(mark), '1', 'PX', ms, 'NX'))) === 'OK',
    hasMark: async (mark) => (await redis.exists(keyOf(mark))) > 0,
    close: async () => redis.disconnect(),
  };
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
