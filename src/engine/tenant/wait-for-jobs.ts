/** Waiting until jobs have ended, with one poll of the ledger for all who wait for jobs of a tenant. */
import { setImmediate as yieldTurn } from 'node:timers/promises';

/**
 * First and longest pause between two polls (ms); each pause is half as long again as the one before it. One who begins
 * to wait makes the next pause a short one.
 */
const POLL_MIN_MS = 4;
const POLL_MAX_MS = 50;
/** Shortest pause as a multiple of the time of the poll before it: polling takes at most a tenth of the thread. */
const REST_TIMES = 9;
/** Greatest number of jobs that are checked before the thread is yielded: a receipt may name many. */
const JOBS_AT_ONCE = 1_000;

/** Lists the unfinished jobs with numbers from `from` to `to`, ascending. */
type ListUnfinished = (from: number, to: number) => readonly number[];

/** Jobs with the numbers from `next` to `last`, for which somebody waits; those before `next` have ended. */
interface Wait {
  next: number;
  readonly last: number;
  readonly settle: (result: { readonly isDone: boolean } | { readonly error: Error }) => void;
}

/** What all who wait for jobs of a tenant share. */
export interface JobWaits {
  /**
   * Waits until the jobs from `first` to `last` have ended.
   * @returns false if `timeoutMs` ran out or the signal was aborted first
   * @throws what `list` throws
   */
  wait(list: ListUnfinished, range: WaitRange): Promise<boolean>;
}

interface WaitRange {
  readonly first: number;
  readonly last: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Makes the waits of a tenant. Polls read by the `list` of one of those who wait. */
export function createJobWaits(): JobWaits {
  const waits = new Set<Wait>();
  let pollMs = POLL_MIN_MS;
  let isPolling = false;

  /** Polls until nobody waits. */
  async function pollOn(list: ListUnfinished): Promise<void> {
    isPolling = true;
    let tookMs = 0;
    while (waits.size > 0) {
      await new Promise((resolve) => setTimeout(resolve, Math.max(pollMs, tookMs * REST_TIMES)));
      pollMs = Math.min(POLL_MAX_MS, pollMs * 1.5);
      try {
        tookMs = await poll(list);
      } catch (error) {
        for (const wait of waits) wait.settle({ error: error as Error });
      }
    }
    isPolling = false;
  }

  /** Reads the ledger once for all who wait, in steps. @returns the time for which it held the thread (ms) */
  async function poll(list: ListUnfinished): Promise<number> {
    let tookMs = 0;
    let left = [...waits];
    while (left.length > 0) {
      const began = performance.now();
      const from = left.reduce((least, { next }) => Math.min(least, next), Infinity);
      const to = from + JOBS_AT_ONCE - 1;
      const unfinished = list(from, to);
      left = left.filter((wait) => wait.next > to || goesOn(wait, unfinished, to));
      tookMs += performance.now() - began;
      if (left.length > 0) await yieldTurn();
    }
    return tookMs;
  }

  return {
    async wait(list, { first, last, timeoutMs, signal }) {
      const wait: Pick<Wait, 'next' | 'last'> = { next: first, last };
      const deadline = performance.now() + timeoutMs;
      if (await hasEnded(wait, list, signal)) return true;
      const leftMs = deadline - performance.now();
      if (leftMs <= 0 || signal?.aborted) return false;
      pollMs = POLL_MIN_MS;
      const isDone = untilSettled(wait, waits, leftMs, signal);
      if (!isPolling) void pollOn(list);
      return (await isDone) || (!signal?.aborted && (await hasEnded(wait, list, signal)));
    },
  };
}

/**
 * Takes note of what a step has found.
 * @param unfinished the unfinished jobs from `wait.next` or before to `to`
 * @returns whether the wait has more jobs, to be checked in the next step
 */
function goesOn(wait: Wait, unfinished: readonly number[], to: number): boolean {
  const found = firstFrom(unfinished, wait.next);
  wait.next = found ?? to + 1;
  if (wait.next > wait.last) wait.settle({ isDone: true });
  return found === undefined && wait.next <= wait.last;
}

/** Returns the first of ascending numbers that is not below `least`. */
function firstFrom(numbers: readonly number[], least: number): number | undefined {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return numbers[low];
}

/** Checks the jobs once. On abort it ends early, and returns false. */
async function hasEnded(
  wait: Pick<Wait, 'next' | 'last'>,
  list: ListUnfinished,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  while (wait.next <= wait.last && !signal?.aborted) {
    const to = Math.min(wait.last, wait.next + JOBS_AT_ONCE - 1);
    const [found] = list(wait.next, to);
    wait.next = found ?? to + 1;
    if (found !== undefined) return false;
    if (wait.next <= wait.last) await yieldTurn();
  }
  return wait.next > wait.last;
}

/** Waits in `waits` until a poll settles it: true once its jobs have ended, false after `ms` or on abort. */
function untilSettled(
  { next, last }: Pick<Wait, 'next' | 'last'>,
  waits: Set<Wait>,
  ms: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const end = () => wait.settle({ isDone: false });
    const timer = setTimeout(end, ms);
    const wait: Wait = {
      next,
      last,
      settle(result) {
        if (!waits.delete(wait)) return;
        clearTimeout(timer);
        signal?.removeEventListener('abort', end);
        if ('error' in result) reject(result.error);
        else resolve(result.isDone);
      },
    };
    waits.add(wait);
    signal?.addEventListener('abort', end);
  });
}
