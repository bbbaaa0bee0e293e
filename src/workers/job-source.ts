import type { QueuedStep } from '../engine/index.ts';

/**
 * Where a worker gets its jobs from: the tenants' ledgers or BullMQ's queues. A source only says where to look: the
 * ledger decides which jobs are due, and the executor claims them there. So a source may hand out the same work twice,
 * late, or after it was done, and may lose all its data in a crash.
 */
export interface JobSource {
  /**
   * Begins to hand out work by calling `run`, with several calls in progress at once: for each step, at most as many as
   * the source has slots for it.
   */
  start(run: RunWork): void;
  /** Stops handing out work. Calls of `run` that have begun go on. */
  pause(): Promise<void>;
  /**
   * Waits for the calls of `run` that have begun (a source with queues for 2 s at most), and closes all connections.
   * Call it after `pause`, once the executor has drained.
   */
  close(): Promise<void>;
}

/**
 * Runs the work that a `JobSource` hands out.
 * @param onClaimed called when a due document was claimed and is about to be read, so that another slot may look for
 *   another document
 * @returns the number of jobs that were claimed; 0 for a tick, and for suspects that are only made due later
 * @throws the error that ended the work, which the executor has logged; EngineError `unavailable` while the executor
 *   stops. A tick does not throw
 */
export type RunWork = (work: Work, onClaimed?: () => void) => Promise<number>;

export type Work = DueWork | NamedWork | Tick;

/**
 * Work on the jobs of one step that are due in a tenant's ledger. The executor chooses the jobs, and how many it takes.
 */
export interface DueWork {
  readonly kind: 'due';
  /** Path of the tenant's file. */
  readonly path: string;
  readonly step: DueStep;
}

/** Work on the jobs of one tenant that a queue named. Jobs that are no longer due are skipped. */
export interface NamedWork {
  readonly kind: 'named';
  /** Path of the tenant's file. */
  readonly path: string;
  readonly step: QueuedStep;
  /** Row numbers of the jobs in the tenant's ledger. */
  readonly jobNos: readonly number[];
  /**
   * True if the jobs are suspects: they were active when their worker died, or in a batch that failed as a whole. The
   * executor runs nothing else meanwhile; if it cannot do so at once, it makes the jobs due later.
   */
  readonly alone: boolean;
  /**
   * True if memories are linked under the same claim as they are encoded, which saves three writes a job compared with
   * a separate job of the queue `link`. It matters to the step `encode` only.
   */
  readonly linksAtOnce: boolean;
}

/** A request for the upkeep of all tenants' files, with the schedules that are due (`Sweeps.tick`). */
interface Tick {
  readonly kind: 'tick';
}

/**
 * The steps by which due work is claimed, each with the steps of the ledger that it covers: jobs at `link` are claimed
 * together with those at `encode`.
 */
export const DUE_STEPS = {
  ingest: ['ingest'],
  encode: ['encode', 'link'],
  reason: ['reason'],
} as const satisfies Record<string, readonly QueuedStep[]>;
/**
 * Step by which due work is claimed: `ingest` reads a document, `encode` embeds and links memories, `reason` asks the
 * language model.
 */
export type DueStep = keyof typeof DUE_STEPS;
