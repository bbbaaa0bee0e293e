import { QUEUED_STEPS, type QueuedStep } from '../jobs.ts';
import type { WaitingJobs } from './dispatch-ports.ts';

/** Rows of one kind, interactive or bulk, at one step. */
export interface Lane {
  readonly step: QueuedStep;
  readonly bulk: boolean;
  /** Tenants that were hinted at or seen to have work, and not found without since. */
  readonly tenants: Set<string>;
  /** The tenant that was served last. The next turn begins behind it, or a full queue would always go to the same. */
  servedLast: string | undefined;
  /** Times at which tenants were served, for those that were served just now (ms, as `performance.now()`). */
  readonly servedAt: Map<string, number>;
}

/** What a round leaves: nothing, rows that have to wait a little, or rows that could go at once. */
export type Left = 'nothing' | 'waiting' | 'more';

/**
 * Most bulk jobs that a queue holds before they are picked up: with 64 ids each, some seconds of work for a few
 * workers.
 */
export const WINDOW_JOBS = 32;
/**
 * Most interactive jobs that a queue holds, which have room of their own: few, so that no add waits long behind another
 * tenant's.
 */
export const INTERACTIVE_WINDOW_JOBS = 8;

/** Interactive adds first, and of each kind the later steps first: they finish what was begun. */
export function createLanes(): Lane[] {
  return [false, true].flatMap((bulk) =>
    QUEUED_STEPS.toReversed().map((step) => ({
      ...{ step, bulk },
      ...{ tenants: new Set<string>(), servedLast: undefined, servedAt: new Map<string, number>() },
    })),
  );
}

/**
 * Counts the queue's jobs that are picked up before a new one of this lane: interactive jobs pass those of bulk adds.
 */
export function ahead({ bulk }: Lane, waiting: WaitingJobs): number {
  return bulk ? waiting.interactive + waiting.bulk : waiting.interactive;
}

/** Counts the jobs that may be added to the queue now. */
export function roomFor(lane: Lane, waiting: WaitingJobs): number {
  return (lane.bulk ? WINDOW_JOBS : INTERACTIVE_WINDOW_JOBS) - ahead(lane, waiting);
}

/** Lists the lane's tenants in the order of their turns. */
export function tenantsInTurn({ servedLast: last, tenants }: Lane): string[] {
  const inOrder = [...tenants].toSorted();
  if (last === undefined) return inOrder;
  return [...inOrder.filter((tenant) => tenant > last), ...inOrder.filter((tenant) => tenant <= last)];
}
