import fs from 'node:fs';
import os from 'node:os';

/**
 * By how many steps the priority of threads is lowered (nice values of Linux), so that the thread that serves requests
 * comes first where cores are few: `questions` for threads that answer queries, `background` for work that nobody waits
 * for.
 */
export const NICENESS = { questions: 5, background: 10 } as const;
const { PRIORITY_LOW } = os.constants.priority;

/**
 * Lowers the priority of this thread by `steps` nice values, at most to the lowest. Only Linux gives a thread a
 * priority of its own; elsewhere, or if the system refuses, nothing changes.
 */
export function giveWay(steps: number): void {
  try {
    const thread = ownThreadId();
    if (thread !== undefined) os.setPriority(thread, Math.min(PRIORITY_LOW, os.getPriority(thread) + steps));
  } catch {
    // The system refuses: the threads share the cores as equals.
  }
}

/** Returns the system's id of the thread that calls; undefined on systems other than Linux. */
export function ownThreadId(): number | undefined {
  try {
    return Number(fs.readlinkSync('/proc/thread-self').split('/').at(-1));
  } catch {
    return undefined;
  }
}
