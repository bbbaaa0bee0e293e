import type { Processor, Queue, Worker, WorkerOptions } from 'bullmq';
import type { QueuePlace } from '../dispatch/dispatch-ports.ts';
import { EngineError } from '../errors.ts';
import type { QueueName } from '../jobs.ts';
import type { Logger } from '../ports.ts';

export interface QueueLinkOptions {
  /** Where the queues are. It may contain a password, so it is never logged. */
  readonly place: QueuePlace;
  readonly logger: Logger;
}

/** A process's link to the server that has BullMQ's queues. */
export interface QueueLink {
  /** Whether the server can be reached, as far as the connection or the last command shows. */
  isUp(): boolean;
  /**
   * Calls `listener` once, as soon as the server can be reached. It must be called right after the link was opened: for
   * a connection to Redis that is ready already, `listener` waits for the next one.
   */
  whenReady(listener: () => void): void;
  /**
   * Calls the server as soon as the link is ready.
   * @throws EngineError `unavailable` if the server is down, refuses the call, or does not answer within 2 s
   */
  bounded<T>(call: () => Promise<T>): Promise<T>;
  /** Opens one queue, whose errors are logged at level debug. It ends with the link. */
  openQueue(name: QueueName): Queue;
  /** Adds jobs to a queue. A job is ignored if the queue still holds one of its id. */
  addJobs(queue: Queue, jobs: Parameters<Queue['addBulk']>[0]): Promise<void>;
  /** Starts a worker of one queue. The caller closes it before the link. */
  openWorker(name: QueueName, handle: Processor, options: Omit<WorkerOptions, 'connection' | 'prefix'>): Worker;
  /** Sets a mark, which all processes see, for a time (ms). */
  setMark(name: string, ms: number): Promise<void>;
  /**
   * Sets a mark, unless it is set already, for a time (ms) or, with null, for as long as the server keeps its data.
   * @returns whether it was not set
   */
  setMissingMark(name: string, ms: number | null): Promise<boolean>;
  hasMark(name: string): Promise<boolean>;
  /** Ends the link. What still waits for an answer then may never get one. */
  close(): Promise<void>;
}

export type { Queue };

export interface LinkUse {
  /**
   * True for a worker, whose commands wait until the server is back; false for callers that can go on without it: their
   * commands fail soon while it is down. PostgreSQL's commands always fail, and BullMQ's workers repeat theirs.
   */
  readonly blocking: boolean;
  /** Time limit of a command (ms); none by default. PostgreSQL's commands always have one. */
  readonly maxCommandMs?: number;
  /** Whether to warn of settings of Redis with which jobs may be lost. */
  readonly warnsOfSettings?: boolean;
}

/** Time limit of a call to the queues' server (ms). Without it, BullMQ would wait forever. */
export const MAX_CALL_MS = 2_000;

/**
 * Number of events that BullMQ keeps in its stream. Nobody reads them, because the job ledger (a table of each tenant's
 * file) has the history.
 */
export const EVENTS_KEPT = 100;

/**
 * Waits for work of a server for at most `MAX_CALL_MS`.
 * @param reasonOf returns why a call failed, in a word that has no secret
 * @throws EngineError `unavailable` that names the server, unless the work itself throws an EngineError
 */
export async function withinLimit<T>(
  work: () => Promise<T>,
  { server, reasonOf }: { readonly server: string; readonly reasonOf: (error: unknown) => string },
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    const message = `${server} did not answer within ${MAX_CALL_MS} ms`;
    timer = setTimeout(() => reject(new EngineError('unavailable', message)), MAX_CALL_MS);
  });
  const answer = work();
  answer.catch(() => {}); // It may fail after the timeout, when nobody waits any more.
  try {
    return await Promise.race([answer, timeout]);
  } catch (error) {
    if (error instanceof EngineError) throw error;
    throw new EngineError('unavailable', `${server} refused a command: ${reasonOf(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Creates the log of the outages of a server of queues: of calls of `lost` in a row only the first writes a line, and
 * `back` writes one only after `lost`.
 * @param names names of the two log entries
 */
export function createOutageLog(logger: Logger, [lost, back]: readonly [string, string]) {
  let isDown = false;
  return {
    lost(code: string): void {
      if (!isDown) logger.warn({ code }, lost);
      isDown = true;
    },
    back(): void {
      if (isDown) logger.info({}, back);
      isDown = false;
    },
  };
}
