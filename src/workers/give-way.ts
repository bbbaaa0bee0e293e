import fs from 'node:fs';
import os from 'node:os';

/**
 * Lowers the priority of this thread, so that requests come first where cores are few. Only on Linux does a thread
 * have a priority of its own; elsewhere, or where the system refuses, nothing changes.
 */
export function giveWayToRequests(): void {
  try {
    const thread = Number(fs.readlinkSync('/proc/thread-self').split('/').at(-1));
    os.setPriority(thread, os.constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Elsewhere the threads share the cores as equals.
  }
}
