import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** Greatest number of attempts to remove the folder at a signal. */
const MAX_REMOVALS = 10;
/** Pause between two attempts to remove the folder (ms). */
const REMOVAL_PAUSE_MS = 100;

/**
 * Makes a folder for temporary files, with `name` in its name, and returns its path. It is removed when the process
 * exits, or at SIGINT, SIGTERM or SIGHUP, which then end the process at once; any other signal leaves it.
 */
export function makeThrowawayFolder(name: string): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), `cairn-${name}-`));
  const remove = () => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  process.on('exit', remove);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // Threads of the service still run. A thread that opens the store at this moment makes the folder again.
      for (let tries = 0; tries < MAX_REMOVALS && fs.existsSync(folder); tries += 1) {
        remove();
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REMOVAL_PAUSE_MS);
      }
      process.exit(128 + os.constants.signals[signal]);
    });
  }
  return folder;
}
