import type { QueuedStep } from '../engine/index.ts';

/**
 * The place from which a worker gets its work. A source only says where to look: the ledger decides what is owed, and
 * the executor claims it there. So a source may hand out the same work twice, late, or after it was done, and may lose
 * all that it knows in a crash.
 */
export interface JobSource {
  /**
   * Begins to hand out work, calling `run` for several pieces at once: as many of each step as the source has slots for
   * it.
   */
  start(run: RunWork): void;
  /** Hands out no more work. Work that is out goes on. */
  pause(): Promise<void>;
  /**
   * Waits for the work that is out and closes every connection. Called after `pause`, once the executor has drained.
   */
  close(): Promise<void>;
}

/**
 * Does a piece of work.
 * @param onClaimed called before the reading of a due document begins, when another one can be looked for
 * @returns how many jobs were claimed; 0 for a tick
 * @throws  whatever kept the work from its end, which the executor has logged; EngineError `unavailable` while it stops
 */
export type RunWork = (work: Work, onClaimed?: () => void) => Promise<number>;

export type Work = DueWork | NamedWork | Tick;

/** Work on what is due in the ledger of one tenant, as much as the executor takes at once. */
export interface DueWork {
  readonly kind: 'due';
  /** Path of the tenant's file. */
  readonly path: string;
  readonly step: DueStep;
}

/** Work on the jobs of one tenant that a queue named, as far as they are still owed. */
export interface NamedWork {
  readonly kind: 'named';
  /** Path of the tenant's file. */
  readonly path: string;
  readonly step: QueuedStep;
  /** Numbers of rows of the ledger. */
  readonly jobNos: readonly number[];
  /** True for suspects, the jobs that were in flight at a crash: the executor runs nothing else meanwhile. */
  readonly alone: boolean;
  /**
   * True to link what was encoded under the same claim, which saves three writes a job over the link's own queue. Only
   * the step `encode` asks for it.
   */
  readonly linksAtOnce: boolean;
}

/** A request to look after all files and to run the schedules that are due there. */
interface Tick {
  readonly kind: 'tick';
}

/**
 * The steps by which due work is claimed, each with the steps of the ledger that it covers: links are claimed with what
 * is to encode.
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
