import { JOB_OPTIONS, noteMaintained, type QueueLink } from '../engine/adapters/index.ts';
import { type Logger, TICK, serialiseError } from '../engine/index.ts';

/** BullMQ's queue of the ticks, over either server. */
type Ticks = ReturnType<QueueLink['openQueue']>;

/** Time between two checks of the job scheduler (ms). */
const SCHEDULER_LOOK_MS = 5_000;

/**
 * Checks every 5 s that the BullMQ job scheduler that sends ticks (requests for periodic upkeep) is there and right,
 * and corrects it if not (`putTickBack`), as Redis may lose all its data. Each check also records that the queues are
 * maintained (`areMaintained`). Every worker that takes jobs of the queue `maintain` does so. A failed check is made
 * again 5 s later; of several in a row, the first is logged.
 * @param link is closed with the handle
 * @returns a handle that ends the checks and the link
 */
export function keepTick(link: QueueLink, logger: Logger): { close(): Promise<void> } {
  let queue: Ticks | undefined;
  let failed = false;
  const look = async () => {
    try {
      await link.bounded(async () => {
        await noteMaintained(link);
        queue ??= link.openQueue('maintain');
        await putTickBack(queue, Date.now());
      });
      failed = false;
    } catch (error) {
      queue = undefined;
      if (!failed) logger.debug({ code: serialiseError(error).code }, 'schedules_unseen');
      failed = true;
    }
  };
  link.whenReady(() => void look());
  const timer = setInterval(() => void look(), SCHEDULER_LOOK_MS);
  return {
    async close() {
      clearInterval(timer);
      await link.close();
    },
  };
}

/**
 * Corrects the BullMQ job scheduler that sends ticks (requests for periodic upkeep) if it is missing or wrong, and
 * removes every other scheduler of the queue. If its next tick is overdue by more than a period, the tick was lost: a
 * worker died while it ran the tick, or its server had no room for it. If its next tick is more than a period ahead,
 * the scheduler was made before the clock was set back.
 * @param now the time, Unix ms
 */
export async function putTickBack(queue: Ticks, now: number): Promise<void> {
  const schedulers = await queue.getJobSchedulers();
  const tick = schedulers.find(({ key }) => key === TICK.id);
  for (const { key } of schedulers) if (key !== TICK.id) await queue.removeJobScheduler(key);
  const aheadMs = (tick?.next ?? Infinity) - now;
  if (tick?.every === TICK.everyMs && Math.abs(aheadMs) <= TICK.everyMs) return;
  // An update alone keeps the time of the next tick. That is right if a tick only waits for a worker, since ticks must
  // never pile up.
  if (aheadMs > TICK.everyMs) await queue.removeJobScheduler(TICK.id);
  await queue.upsertJobScheduler(TICK.id, { every: TICK.everyMs }, { name: TICK.id, opts: { ...JOB_OPTIONS } });
}
