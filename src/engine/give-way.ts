import fs from 'node:fs';
import os from 'node:os';

/**
 * How many steps the priority of threads is lowered (nice values of Linux), so that the thread that serves requests
 * comes first where cores are few: that of those that answer questions a little, and for work that nobody waits for
 * more.
 */
export const NICENESS = { questions: 5, background: 10 } as const;
const { PRIORITY_LOW } = os.constants.priority;

/**
 * Lowers the priority of this thread by some steps. Only on Linux does a thread have a priority of its own; elsewhere,
 * or where the system refuses, nothing changes.
 */
export function giveWay(steps: number): void {
  try {
    const thread = Number(fs.readlinkSync('/proc/thread-self').split('/').at(-1));
    os.setPriority(thread, Math.min(PRIORITY_LOW, os.getPriority(thread) + steps));
  } catch {
    // Elsewhere the threads share the cores as equals.
  }
}
