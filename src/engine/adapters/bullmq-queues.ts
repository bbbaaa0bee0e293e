import type { StepQueues } from '../dispatch/dispatch-ports.ts';
import { QUEUE_NAMES, type QueueName } from '../jobs.ts';
import { openQueueLink } from './open-queue-link.ts';
import { MAX_CALL_MS, type Queue, type QueueLink, type QueueLinkOptions } from './queue-link.ts';

/** Time for which a dispatcher counts as the leader after it called `lead` (ms). */
const LEADS_MS = 2_000;
/** Time for which the schedules count as maintained after a worker has said so (`noteMaintained`), in ms. */
const MAINTAINED_MS = 60_000;
/** Priority of bulk jobs in BullMQ. Workers take them after all interactive jobs, which have no priority number. */
const BULK_PRIORITY = 10;
/**
 * Names of the marks in the server of the queues. `known`: the server still has what was put into the queues. `leader`:
 * a dispatcher leads. `maintained`: a worker maintains the schedules.
 */
const MARKS = { known: 'known', leader: 'leader', maintained: 'maintained' } as const;

/**
 * BullMQ's options for every job. BullMQ neither retries nor keeps jobs, because each tenant's job ledger counts
 * attempts and keeps outcomes.
 */
export const JOB_OPTIONS = { attempts: 1, removeOnComplete: true, removeOnFail: true } as const;

/** Counts the jobs in the queues, for metrics. */
export interface QueueCounter {
  /** Returns the number of jobs of every queue in each of `COUNTED_STATES`; undefined while the server is down. */
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
 * Opens BullMQ's queues for a dispatcher, one for each step of the work (encode, link …). The caller closes them. A
 * method that calls the server rejects with EngineError `unavailable` if the call fails or has no answer within 2 s
 * (`MAX_CALL_MS`); only `counts` never rejects.
 * @throws EngineError as `openQueueLink` says
 */
export async function openStepQueues(options: QueueLinkOptions): Promise<StepQueues & QueueCounter> {
  const link = await openQueueLink(options, { blocking: false, warnsOfSettings: true });
  const queues = new Map<QueueName, Queue>();
  /**
   * Whether this server is new to this process, or has just lost its data, so that a worker's note (`noteMaintained`)
   * may be missing.
   */
  let isNew = true;

  /**
   * Calls BullMQ's queue of a step. After a failure, the queue object is created again at the next call, as a queue
   * object that failed to get ready never recovers.
   */
  async function call<T>(step: QueueName, work: (queue: Queue) => Promise<T>): Promise<T> {
    try {
      return await link.bounded(() => {
        let queue = queues.get(step);
        if (queue === undefined) queues.set(step, (queue = link.openQueue(step)));
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
      await call(step, (queue) => link.addJobs(queue, added));
    },
    // If the mark could be set, it was gone, and with it everything that the queues held.
    async haveForgotten() {
      const wasGone = await link.bounded(() => link.setMissingMark(MARKS.known, null));
      isNew ||= wasGone;
      return wasGone;
    },
    async areMaintained() {
      if (isNew) await link.bounded(() => link.setMissingMark(MARKS.maintained, MAINTAINED_MS));
      isNew = false;
      return link.bounded(() => link.hasMark(MARKS.maintained));
    },
    lead: () => link.bounded(() => link.setMark(MARKS.leader, LEADS_MS)),
    haveLeader: () => link.bounded(() => link.hasMark(MARKS.leader)),
    isUp: () => link.isUp(),
    async counts() {
      if (!link.isUp()) return undefined;
      try {
        return await countJobs((name) => call(name, (queue) => queue.getJobCounts(...COUNTED_STATES)));
      } catch {
        return undefined; // The server was lost just now; the dispatcher reports that.
      }
    },
    close: () => link.close(),
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
 * Opens BullMQ's own queue objects, one for each of `QUEUE_NAMES`, for a dashboard that calls them directly. A command
 * that the server does not answer fails after some seconds.
 * @throws EngineError `unavailable` if the server is down or does not get ready within 2 s; others as `openQueueLink`
 *   says
 */
export async function openQueuesToShow(
  options: QueueLinkOptions,
): Promise<{ readonly queues: readonly Queue[]; isUp(): boolean; close(): void }> {
  const link = await openQueueLink(options, { blocking: false, maxCommandMs: MAX_CALL_MS });
  try {
    await link.bounded(async () => {});
  } catch (error) {
    await link.close();
    throw error;
  }
  return {
    queues: QUEUE_NAMES.map((name) => link.openQueue(name)),
    isUp: () => link.isUp(),
    close: () => void link.close(),
  };
}

/**
 * Notes that a worker maintains the schedules. The note expires after a minute (`MAINTAINED_MS`), so it must be made
 * again before.
 */
export function noteMaintained(link: QueueLink): Promise<void> {
  return link.setMark(MARKS.maintained, MAINTAINED_MS);
}
