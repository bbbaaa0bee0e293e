import fs from 'node:fs';

interface TimeLimit {
  /** The time limit (ms). Time without a processor does not count. */
  readonly timeoutMs: number;
  /**
   * Returns how long the limited process or thread was ready to run but had no processor, since any fixed moment (ms):
   * the result of the function `unscheduledMs` for it.
   */
  readonly unscheduledMs: () => number;
  /**
   * Called once, when the time limit has expired. If the limit is stopped in the same moment, it may still be called
   * just after: the caller must check then whether its work has ended.
   */
  readonly expire: () => void;
}

/** Greatest time without a processor that is not counted, as a multiple of the time limit. */
const MAX_UNSCHEDULED = 60;

/**
 * Starts a time limit. Time without a processor does not count, up to 60 times the limit: on a busy machine a thread of
 * low priority waits for a processor far longer than it runs, and the answer to its call may have arrived long ago.
 * @returns a function that stops the time limit and returns the time that counted (ms), from 0 to `timeoutMs`
 */
export function limitTime({ timeoutMs, unscheduledMs, expire }: TimeLimit): () => number {
  const startedAt = performance.now();
  const before = unscheduledMs();
  let unscheduled = 0;
  const usedMs = () => {
    // For a process that has ended, the system reports 0: the greatest value that it reported before counts.
    unscheduled = Math.max(unscheduled, Math.min(unscheduledMs() - before, MAX_UNSCHEDULED * timeoutMs));
    // The system counts a wait when the wait ends, and the wait may have begun before this time limit.
    return Math.max(0, performance.now() - startedAt - unscheduled);
  };
  const check = () => {
    const leftMs = timeoutMs - usedMs();
    // If this thread itself was busy, an answer may have arrived unread: the thread reads before `expire` runs.
    if (leftMs < 1) setImmediate(expire);
    else timer = setTimeout(check, leftMs);
  };
  let timer = setTimeout(check, timeoutMs);
  return () => {
    clearTimeout(timer);
    return Math.min(usedMs(), timeoutMs);
  };
}

/**
 * Returns the longest time that may pass until a limit of `timeoutMs` expires, including time without a processor (ms).
 */
export function longestTime(timeoutMs: number): number {
  return (1 + MAX_UNSCHEDULED) * timeoutMs;
}

/**
 * Returns how long a thread was ready to run but had no processor, since its start (ms); 0 for one that has ended, and
 * on systems other than Linux.
 * @param of the system's id of the thread, that of a process for its main thread, or `thread-self` for the thread that
 *   calls
 */
export function unscheduledMs(of: number | 'thread-self'): number {
  try {
    return Number(fs.readFileSync(`/proc/${of}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
  } catch {
    return 0;
  }
}
