import type { Queue } from 'bullmq';
import {
  type BullmqOptions,
  JOB_OPTIONS,
  bounded,
  connectRedis,
  noteMaintained,
  openQueue,
} from '../engine/adapters/index.ts';
import { TICK, serialiseError } from '../engine/index.ts';

/** Time between two looks at whether the job scheduler is still there (ms). */
const SCHEDULER_LOOK_MS = 5_000;

/**
 * Keeps the job scheduler whose jobs are ticks in Redis, which may forget it with everything else. Every worker that
 * takes ticks does so.
 */
export async function keepTick(QueueClass: typeof Queue, bullmq: BullmqOptions): Promise<{ close(): void }> {
  const redis = await connectRedis(bullmq, { blocking: false });
  let queue: Queue | undefined;
  let failed = false;
  const look = async () => {
    try {
      await bounded(redis, async () => {
        await noteMaintained(redis, bullmq);
        queue ??= openQueue(QueueClass, 'maintain', redis, bullmq);
        await putTickBack(queue, Date.now());
      });
      failed = false;
    } catch (error) {
      queue = undefined;
      if (!failed) bullmq.logger.debug({ code: serialiseError(error).code }, 'schedules_unseen');
      failed = true;
    }
  };
  redis.once('ready', () => void look());
  const timer = setInterval(() => void look(), SCHEDULER_LOOK_MS);
  return {
    close() {
      clearInterval(timer);
      redis.disconnect();
    },
  };
}

/**
 * Corrects the job scheduler unless it is as it should be, and removes any other. A scheduler whose next tick is more
 * than a period late has lost the tick (a worker died over it, or Redis had no room for it), and one whose next tick is
 * further ahead than a period was made before the clock was set back.
 * @param now the time, Unix ms
 */
export async function putTickBack(queue: Queue, now: number): Promise<void> {
  const schedulers = await queue.getJobSchedulers();
  const tick = schedulers.find(({ key }) => key === TICK.id);
  for (const { key } of schedulers) if (key !== TICK.id) await queue.removeJobScheduler(key);
  const aheadMs = (tick?.next ?? Infinity) - now;
  if (tick?.every === TICK.everyMs && Math.abs(aheadMs) <= TICK.everyMs) return;
  // An update alone keeps the time of the next tick, as it should where a tick only waits for a worker: ticks never
  // pile up.
  if (aheadMs > TICK.everyMs) await queue.removeJobScheduler(TICK.id);
  await queue.upsertJobScheduler(TICK.id, { every: TICK.everyMs }, { name: TICK.id, opts: { ...JOB_OPTIONS } });
}
