import { QUEUED_STEPS, type QueuedStep } from '../jobs.ts';
import type { WaitingJobs } from './dispatch-ports.ts';

/** Rows of one kind, interactive or bulk, at one step. */
export interface Lane {
  readonly step: QueuedStep;
  readonly bulk: boolean;
  /** Ids of the tenants that hints named or looks saw with work, and that were not found without work since. */
  readonly tenants: Set<string>;
  /**
   * Id of the tenant that was served last. The next turn begins behind it, or a full queue would always go to the same.
   */
  servedLast: string | undefined;
  /** Times at which tenants were served, by id, for those that were served just now (ms, as `performance.now()`). */
  readonly servedAt: Map<string, number>;
}

/**
 * The rest that a round leaves: `nothing`; `waiting`, rows for which the queue has no room or which gather; `more`, as
 * rows were handed out and others may go at once.
 */
export type Left = 'nothing' | 'waiting' | 'more';

/**
 * Number of waiting jobs in a queue, interactive ones included, at which no more bulk jobs are added: with 64 ids each,
 * some seconds of work for a few workers.
 */
export const BULK_WINDOW_JOBS = 32;
/**
 * Number of waiting interactive jobs in a queue at which no more of them are added, however many bulk jobs wait. It is
 * small, so that no add waits long behind another tenant's.
 */
export const INTERACTIVE_WINDOW_JOBS = 8;

/**
 * Number of documents in a queue that nobody has picked up, at which no more of them are added. Each may take a reader
 * half a minute, and a tenant that comes later waits behind them.
 */
export const DOCUMENT_WINDOW_JOBS = 4;

/** Creates all lanes, interactive ones first, and of each kind the later steps first: they finish what was begun. */
export function createLanes(): Lane[] {
  return [false, true].flatMap((bulk) =>
    QUEUED_STEPS.toReversed().map((step) => ({
      step,
      bulk,
      tenants: new Set<string>(),
      servedLast: undefined,
      servedAt: new Map<string, number>(),
    })),
  );
}

/**
 * Counts the waiting jobs of the lane's queue that are picked up before a new one of this lane: interactive jobs pass
 * those of bulk adds.
 */
export function ahead({ bulk }: Lane, waiting: WaitingJobs): number {
  return bulk ? waiting.interactive + waiting.bulk : waiting.interactive;
}

/** Counts the jobs that may be added to the lane's queue now; 0 or less if it is full. */
export function roomFor(lane: Lane, waiting: WaitingJobs): number {
  return windowOf(lane) - ahead(lane, waiting);
}

function windowOf({ step, bulk }: Lane): number {
  if (step === 'ingest') return DOCUMENT_WINDOW_JOBS;
  return bulk ? BULK_WINDOW_JOBS : INTERACTIVE_WINDOW_JOBS;
}

/** Lists the ids of the lane's tenants in the order of their turns: sorted, beginning after the one served last. */
export function tenantsInTurn({ servedLast: last, tenants }: Lane): string[] {
  const inOrder = [...tenants].toSorted();
  if (last === undefined) return inOrder;
  return [...inOrder.filter((tenant) => tenant > last), ...inOrder.filter((tenant) => tenant <= last)];
}
