/**
 * Limits the work of a request. Work is counted in bytes of the rows that are examined, so that with equal data it ends
 * at the same row on a fast and on a slow machine. A deadline also ends work that takes too long.
 */

import type { WorkEnd } from '../types.ts';

/** Budget of the work for one request. */
export interface WorkBudget {
  /** Why the work ended early; null while it may go on. */
  readonly end: WorkEnd | null;
  /** Whether something was left out that would have taken too much of the budget; the work has gone on without it. */
  isIncomplete: boolean;
  /** Number of bytes that may still be examined. */
  readonly left: number;
  /**
   * Subtracts `bytes` from the budget. Returns false if the budget is used up or its deadline is over, by this or an
   * earlier call: the caller must then stop reading. Everywhere in this file, a budget whose deadline is over counts as
   * used up.
   */
  spend(bytes: number): boolean;
  /** Time until the deadline (ms), negative after it; Infinity without a deadline. */
  readonly leftMs: number;
  /** Ends the budget if its deadline is over. */
  noteTime(): void;
}

/**
 * Returns the reason that an answer states for being incomplete: why its work ended, or that something was left out;
 * null for a complete answer, and without a budget.
 */
export function toldEnd(budget: WorkBudget | undefined): WorkEnd | null {
  if (budget === undefined) return null;
  return budget.end ?? (budget.isIncomplete ? 'work_budget' : null);
}

/** Number of bytes for which a row counts if a statement examines it without parsing any of it. */
export const ROW_BYTES = 32;
/** Number of bytes of work after which the clock is read again: about 5 ms of work. */
const LOOK_BYTES = 1_048_576;

/** A budget that never ends, for work outside of `runWithin`. */
const UNLIMITED: WorkBudget = {
  end: null,
  isIncomplete: false,
  left: Infinity,
  leftMs: Infinity,
  spend: () => true,
  noteTime() {},
};

/**
 * Makes a budget.
 * @param limits.bytes number of bytes that may be examined
 * @param limits.deadlineMs time from now after which the work ends in any case, in ms
 * @param clock returns a time in ms that never goes back
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
    isIncomplete: false,
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
    get leftMs() {
      return deadline - clock();
    },
    noteTime() {
      if (clock() > deadline) end ??= 'deadline';
    },
  };
}

/**
 * Makes a budget that is a part of another one: it ends after `bytes`, or when `whole` ends. What is spent from it is
 * also spent from `whole`.
 */
function partOf(whole: WorkBudget, bytes: number): WorkBudget {
  let left = bytes;
  let end: WorkEnd | null = null;
  return {
    get isIncomplete() {
      return whole.isIncomplete;
    },
    set isIncomplete(is) {
      whole.isIncomplete = is;
    },
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
    get leftMs() {
      return whole.leftMs;
    },
    noteTime() {
      whole.noteTime();
      end ??= whole.end;
    },
  };
}

/** Error that is thrown inside of a statement to stop it when the budget is used up. It is caught in this file. */
const STOP = new Error('the work budget has ended');

/**
 * The budget of the work that runs on this thread now, and whether `spendWork` throws STOP once the budget is used up.
 */
let running = { budget: UNLIMITED, stops: false };

/** Runs `work` with a budget, from which `spendWork` subtracts. `work` must not await anything. */
export function runWithin<T>(budget: WorkBudget, work: () => T): T {
  return during({ budget, stops: false }, work);
}

/**
 * Runs `work` whose reads are only a guess, and are made again later: within a budget of its own that is as large as
 * what is left of the present one. Nothing is subtracted from the present one. `work` must not await anything.
 */
export function runUncounted<T>(work: () => T): T {
  const { left, leftMs } = running.budget;
  return runWithin(createWorkBudget({ bytes: left, deadlineMs: leftMs }), work);
}

/**
 * Subtracts bytes from the budget of the present `runWithin`. Returns false if that budget is used up: the caller must
 * then stop reading. Inside `readUntilWorkEnds` it throws instead, to stop the statement.
 */
export function spendWork(bytes: number): boolean {
  const isLeft = running.budget.spend(bytes);
  if (!isLeft && running.stops) throw STOP;
  return isLeft;
}

/** Greatest share of what is left of the budget that one word of a query may take. */
export const WORD_SHARE = 0.5;

/**
 * Subtracts the bytes of a word's postings from the budget of the present `runWithin`, unless they are more than half
 * of what is left. Then it returns false and the budget goes on: the caller leaves the word out, so that the other
 * words and the vectors still find what they find, and the answer is told as incomplete (`isIncomplete`). It also
 * returns false once the budget is used up.
 */
export function spendOnWord(bytes: number): boolean {
  const { budget } = running;
  if (budget.end !== null) return false;
  if (bytes <= WORD_SHARE * budget.left) return spendWork(bytes);
  budget.isIncomplete = true;
  return false;
}

/**
 * Returns what is left of the budget of the present `runWithin`, for a statement that runs elsewhere: the time until
 * its deadline (ms), and the number of bytes; Infinity without a budget.
 */
export function workLeft(): { readonly ms: number; readonly bytes: number } {
  return { ms: running.budget.leftMs, bytes: running.budget.left };
}

/**
 * Subtracts the bytes of work that is done already, such as a statement elsewhere, from the budget of the present
 * `runWithin`, and ends it if its deadline is over. What was read remains valid.
 */
export function noteWork(bytes: number): void {
  running.budget.spend(bytes);
  running.budget.noteTime();
}

/** Tells whether the budget of the present `runWithin` is used up; false outside of `runWithin`. */
export function hasWorkEnded(): boolean {
  return running.budget.end !== null;
}

/**
 * Reads rows until the budget of the present `runWithin` is used up.
 * @param share greatest share of the remaining budget that these rows may use, 0..1
 * @returns the rows that were read; `isCut` is true if the budget ended, so that there may be more rows
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
    // PostgreSQL ends a statement at the deadline without an error.
    return { rows: read, isCut: budget.end !== null };
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
