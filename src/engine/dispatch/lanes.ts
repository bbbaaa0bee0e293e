import { QUEUED_STEPS, type QueuedStep } from '../jobs.ts';
import type { DueSteps } from '../store/dispatch.ts';
import type { WaitingJobs } from './dispatch-ports.ts';

/**
 * A lane: for one step, the due ledger rows (jobs) of interactive adds or those of bulk adds, and the tenants that have
 * them.
 */
export interface Lane {
  readonly step: QueuedStep;
  readonly bulk: boolean;
  /**
   * Ids of the tenants that may have ledger rows (jobs) to hand out: a hint named them, or work was seen in their
   * ledger, and since then no attempt to take rows has failed or found none.
   */
  readonly tenants: Set<string>;
  /**
   * Id of the tenant that was served last; undefined before the first. The next turn begins with the tenant after it;
   * otherwise a full queue would always serve the same ones.
   */
  servedLast: string | undefined;
  /**
   * Times at which tenants were served (ms, as `performance.now()`), by their ids. Times older than 100 ms are removed
   * at each round.
   */
  readonly servedAt: Map<string, number>;
}

/**
 * What is left after a round: `nothing`; `waiting`, if rows are collected for a full job or have no room in the queue;
 * `more`, if rows were handed out and others may be handed out at once.
 */
export type Left = 'nothing' | 'waiting' | 'more';

/**
 * Number of jobs waiting in a queue, interactive ones included, at which no more bulk jobs are added. With 64 rows in
 * each job, they are some seconds of work for a few workers.
 */
export const BULK_WINDOW_JOBS = 32;
/**
 * Number of interactive jobs waiting in a queue at which no more interactive jobs are added, however many bulk jobs
 * wait. It is small, so that no add waits long for the adds of another tenant.
 */
export const INTERACTIVE_WINDOW_JOBS = 8;

/**
 * Number of documents waiting in a queue at which no more documents are added; those of bulk adds do not count for an
 * interactive one. A worker may need half a minute for each, and documents of a tenant that comes later wait for them.
 */
export const DOCUMENT_WINDOW_JOBS = 4;

/**
 * Creates all lanes: the interactive ones first, and within each kind those of later steps first, since these finish
 * work that was begun.
 */
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

/** Adds a tenant to the lanes in which it has due rows. */
export function addToLanes(lanes: readonly Lane[], tenant: string, { interactive, bulk }: DueSteps): void {
  for (const lane of lanes) if ((lane.bulk ? bulk : interactive).includes(lane.step)) lane.tenants.add(tenant);
}

/** Counts the waiting jobs of a queue that are picked up before a new job of this lane would be. */
export function countAhead({ bulk }: Lane, waiting: WaitingJobs): number {
  return bulk ? waiting.interactive + waiting.bulk : waiting.interactive;
}

/** Returns the number of jobs that may be added to the lane's queue now; 0 or less if it is full. */
export function roomFor(lane: Lane, waiting: WaitingJobs): number {
  return windowOf(lane) - countAhead(lane, waiting);
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
