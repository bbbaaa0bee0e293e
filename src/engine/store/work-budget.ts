/**
 * The work that a request may cause. What is counted are the bytes of the rows that it looks at, so that equal data at
 * an equal time ends at the same place, on a fast machine as on a slow one. A deadline ends work that takes too long
 * all the same.
 */
import type { WorkEnd } from '../types.ts';

/** Work that may be done for one request. */
export interface WorkBudget {
  /** Why the work ended early; null as long as it may go on. */
  readonly end: WorkEnd | null;
  /** Bytes that may still be looked at. */
  readonly left: number;
  /** Takes `bytes` from what is left; returns false, from then on for good, if that was too much. */
  spend(bytes: number): boolean;
}

/** Bytes that a row counts for which a statement looks at without parsing anything of it. */
export const ROW_BYTES = 32;
/** Bytes of work between two looks at the clock: about 5 ms of it. */
const LOOK_BYTES = 1_048_576;

/** A budget that never ends. */
const UNLIMITED: WorkBudget = { end: null, left: Infinity, spend: () => true };

/**
 * Makes a budget of its own.
 * @param limits.bytes bytes that may be looked at
 * @param limits.deadlineMs time from now after which the work ends in any case, ms
 * @param clock a time in ms that never goes back
 */
export function createWorkBudget(
  limits: { readonly bytes: number; readonly deadlineMs: number },
  clock: () => number = () => performance.now(),
): WorkBudget {
  const deadline = clock() + limits.deadlineMs;
  let end: WorkEnd | null = null;
  let left = limits.bytes;
  let nextLook = limits.bytes;
  return {
    get end() {
      return end;
    },
    get left() {
      return left;
    },
    spend(bytes) {
      if (end !== null) return false;
      left -= bytes;
      if (left < 0) end = 'work_budget';
      else if (left <= nextLook) {
        if (clock() > deadline) end = 'deadline';
        nextLook = left - LOOK_BYTES;
      }
      return end === null;
    },
  };
}

/** Makes a budget that ends with `whole` or after `bytes`. What is spent of it is spent of `whole`, too. */
function partOf(whole: WorkBudget, bytes: number): WorkBudget {
  let left = bytes;
  let end: WorkEnd | null = null;
  return {
    get end() {
      return end;
    },
    get left() {
      return Math.min(left, whole.left);
    },
    spend(bytes) {
      left -= bytes;
      if (!whole.spend(bytes)) end ??= whole.end;
      else if (left < 0) end ??= 'work_budget';
      return end === null;
    },
  };
}

/** Thrown inside a statement to end it; it never leaves this file. */
const STOP = new Error('the work budget has ended');

/** The budget of the work that runs on this thread, and whether a statement stops where it ends. */
let running = { budget: UNLIMITED, stops: false };

/** Runs `work`, which awaits nothing, within a budget. */
export function runWithin<T>(budget: WorkBudget, work: () => T): T {
  return during({ budget, stops: false }, work);
}

/** Counts work of what runs at present; returns false once its budget has ended, so that nothing more may be read. */
export function spendWork(bytes: number): boolean {
  const isLeft = running.budget.spend(bytes);
  if (!isLeft && running.stops) throw STOP;
  return isLeft;
}

/** Whether the budget of what runs at present has ended. */
export function hasWorkEnded(): boolean {
  return running.budget.end !== null;
}

/**
 * Reads rows until the budget ends.
 * @param share share of what is left that may be spent on these rows, 0..1
 * @returns the rows up to that point, and whether there may be more
 */
export function readUntilWorkEnds<Row>(
  rows: () => Iterable<Row>,
  share = 1,
): { readonly rows: Row[]; readonly isCut: boolean } {
  const read: Row[] = [];
  const budget = share === 1 ? running.budget : partOf(running.budget, share * running.budget.left);
  if (budget.end !== null) return { rows: read, isCut: true };
  try {
    during({ budget, stops: true }, () => {
      for (const row of rows()) read.push(row);
    });
    return { rows: read, isCut: false };
  } catch (error) {
    if (error !== STOP) throw error;
    return { rows: read, isCut: true };
  }
}

function during<T>(next: typeof running, work: () => T): T {
  const outer = running;
  running = next;
  try {
    return work();
  } finally {
    running = outer;
  }
}
