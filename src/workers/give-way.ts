import fs from 'node:fs';
import os from 'node:os';

/** On Linux a thread has a priority of its own. Where cores are few, requests come before what can wait. */
export function giveWayToRequests(): void {
  try {
    const thread = Number(fs.readlinkSync('/proc/thread-self').split('/').at(-1));
    os.setPriority(thread, os.constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Elsewhere the threads share the cores as equals.
  }
}
