/** Waiting until jobs have ended, with one poll of the ledger for all who wait for jobs of a tenant. */
import { setImmediate as yieldTurn } from 'node:timers/promises';

/**
 * First pause between two polls (ms); each pause is half as long again as the one before it. One who begins to wait
 * makes the present pause such a short one.
 */
const POLL_MIN_MS = 4;
/** Longest pause between two polls (ms), unless `REST_TIMES` makes it longer. */
const POLL_MAX_MS = 50;
/**
 * Shortest pause as a multiple of the time of the poll before it. So regular polls take at most a tenth of the thread;
 * the last polls of waits that run out of time come on top.
 */
const REST_TIMES = 9;
/** Greatest number of jobs that are checked before the thread is yielded: a write receipt may name many. */
const JOBS_AT_ONCE = 1_000;
/** Longest time for which one poll goes on along ranges of more than `JOBS_AT_ONCE` jobs (ms). */
const WALK_MS = 5;

/** Lists at most `limit` of the unfinished jobs with numbers from `from` to `to`, ascending. */
type ListUnfinished = (from: number, to: number, limit: number) => readonly number[];

/** Jobs with the numbers from `next` to `last`, for which somebody waits; those before `next` have ended. */
interface Wait {
  next: number;
  readonly last: number;
  readonly settle: (result: { readonly isDone: boolean } | { readonly error: Error }) => void;
}

/** What all who wait for jobs of a tenant share. */
export interface JobWaits {
  /**
   * Waits until the jobs from `first` to `last` have ended. The caller's own read checks the first 1,000 numbers; the
   * rest of a longer range is checked by the polls that all share.
   * @returns false if `timeoutMs` ran out or the signal was aborted first; also for a range of over 1,000 numbers with
   *   a `timeoutMs` of 0, even if all have ended
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
  const pause = createPause();
  let pollMs = POLL_MIN_MS;
  let isPolling = false;
  /** The poll under way. */
  let polled: Promise<void> | undefined;
  /** End of the last poll (`performance.now()`), and the time for which it held the thread (ms). */
  let [polledAt, tookMs] = [-Infinity, 0];

  /** Polls until nobody waits. */
  async function pollOn(list: ListUnfinished): Promise<void> {
    isPolling = true;
    while (waits.size > 0) {
      await pause.until(performance.now() + Math.max(pollMs, tookMs * REST_TIMES));
      pollMs = Math.min(POLL_MAX_MS, pollMs * 1.5);
      await pollOnce(list);
    }
    isPolling = false;
  }

  /** Polls for all who wait, or waits for the poll under way. If it fails, their waits end with the error. */
  function pollOnce(list: ListUnfinished): Promise<void> {
    polled ??= poll(list, waits)
      .then(
        (done) => {
          tookMs = done.tookMs;
          if (done.isWalking) pollMs = POLL_MIN_MS;
        },
        (error: unknown) => waits.forEach((wait) => wait.settle({ error: error as Error })),
      )
      .finally(() => {
        polled = undefined;
        polledAt = performance.now();
      });
    return polled;
  }

  /** Returns the time (`performance.now()`) before which no regular poll reads the ledger again. */
  function restsUntil(): number {
    return polledAt + Math.max(POLL_MIN_MS, tookMs * REST_TIMES);
  }

  /** Ends a wait out of time, after a last poll that such waits share; without it if the ledger was just read. */
  async function end(list: ListUnfinished, wait: Wait): Promise<void> {
    if (performance.now() >= Math.min(restsUntil(), polledAt + POLL_MAX_MS)) await pollOnce(list);
    wait.settle({ isDone: false });
  }

  return {
    async wait(list, { first, last, timeoutMs, signal }) {
      const deadline = performance.now() + timeoutMs;
      if (signal?.aborted) return false;
      const to = Math.min(last, first + JOBS_AT_ONCE - 1);
      const next = first > last ? first : (list(first, to, 1)[0] ?? to + 1);
      if (next > last) return true;
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) return false;
      pollMs = POLL_MIN_MS;
      pause.endBy(Math.max(performance.now() + POLL_MIN_MS, restsUntil()));
      const isDone = untilSettled({ next, last }, waits, {
        ms: leftMs,
        end: (waiting) => void end(list, waiting),
        signal,
      });
      if (!isPolling) void pollOn(list);
      return isDone;
    },
  };
}

/**
 * Checks the next jobs of all who wait, in steps of 1,000 numbers, each of which serves all whose next job is in it.
 * Those who have more to check go on together for as long as `WALK_MS` allows, so that a long range delays no other.
 * @returns the time for which it held the thread (ms), and whether somebody has more to check in the next poll
 */
async function poll(
  list: ListUnfinished,
  waits: ReadonlySet<Wait>,
): Promise<{ readonly tookMs: number; readonly isWalking: boolean }> {
  let tookMs = 0;
  let left = [...waits];
  while (left.length > 0) {
    const due = left.toSorted((a, b) => a.next - b.next);
    left = [];
    for (let at = 0; at < due.length;) {
      const began = performance.now();
      const to = due[at]!.next + JOBS_AT_ONCE - 1;
      const unfinished = list(due[at]!.next, to, JOBS_AT_ONCE);
      for (; at < due.length && due[at]!.next <= to; at += 1) if (goesOn(due[at]!, unfinished, to)) left.push(due[at]!);
      tookMs += performance.now() - began;
      if (at < due.length) await yieldTurn();
    }
    if (left.length === 0 || tookMs >= WALK_MS) break;
    await yieldTurn();
    left = left.filter((wait) => waits.has(wait));
  }
  return { tookMs, isWalking: left.length > 0 };
}

/**
 * Takes note of what a step has found.
 * @param unfinished the unfinished jobs from `wait.next` or before to `to`
 * @returns whether all its jobs in this step have ended and it has more, to be checked in the next step
 */
function goesOn(wait: Wait, unfinished: readonly number[], to: number): boolean {
  const found = firstFrom(unfinished, wait.next);
  wait.next = found ?? to + 1;
  if (wait.next > wait.last) wait.settle({ isDone: true });
  return found === undefined && wait.next <= wait.last;
}

/** Returns the first of ascending numbers that is not below `least`; undefined if all are below it. */
function firstFrom(numbers: readonly number[], least: number): number | undefined {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return numbers[low];
}

interface Limits {
  readonly ms: number;
  /** Called once `ms` have passed; it ends the wait, after a last poll. */
  readonly end: (wait: Wait) => void;
  readonly signal: AbortSignal | undefined;
}

/**
 * Adds a wait to `waits`, and resolves when it is settled: to true once its jobs have ended, to false if its time runs
 * out or `signal` aborts before. It rejects with the error of a poll that fails.
 */
function untilSettled(
  { next, last }: Pick<Wait, 'next' | 'last'>,
  waits: Set<Wait>,
  { ms, end, signal }: Limits,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const leave = () => wait.settle({ isDone: false });
    const timer = setTimeout(() => end(wait), ms);
    const wait: Wait = {
      next,
      last,
      settle(result) {
        if (!waits.delete(wait)) return;
        clearTimeout(timer);
        signal?.removeEventListener('abort', leave);
        if ('error' in result) reject(result.error);
        else resolve(result.isDone);
      },
    };
    waits.add(wait);
    signal?.addEventListener('abort', leave);
  });
}

/** Makes a pause that can be shortened while it runs. Times are those of `performance.now()`. */
function createPause() {
  let timer: NodeJS.Timeout | undefined;
  /** End of the pause that runs, by `performance.now()`; -Infinity if none does. */
  let endsAt = -Infinity;
  let wake = () => {};
  function arm(time: number): void {
    clearTimeout(timer);
    endsAt = time;
    timer = setTimeout(() => {
      endsAt = -Infinity;
      wake();
    }, time - performance.now());
  }
  return {
    until(time: number): Promise<void> {
      return new Promise((resolve) => {
        wake = resolve;
        arm(time);
      });
    },
    /** Makes the pause that runs end at this time, if it would end later. */
    endBy(time: number): void {
      if (time < endsAt) arm(time);
    },
  };
}
