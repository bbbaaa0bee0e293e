import { AsyncLocalStorage } from 'node:async_hooks';
import type { EmbedLogEntry } from '../engine/index.ts';

/**
 * The provider calls of a worker's runs (the work on one batch of jobs of a tenant's file) that are not logged in the
 * tenants' files yet. Runs of several tenants are in progress at the same time, so each call is kept with the path of
 * the file on which the run that made it works.
 */
export interface CallLog {
  /** Keeps a call for the file of the run that made it, the last 1,000. A call outside of a run is not kept. */
  note(call: EmbedLogEntry): void;
  /** Does the work of a run on the file at `path`, and returns its result. Its calls are kept for this file. */
  during<T>(path: string, work: () => Promise<T>): Promise<T>;
  /** Passes the calls that are kept for a file to `write`, if there are any. If `write` throws, they are kept on. */
  flush(path: string, write: (calls: readonly EmbedLogEntry[]) => void): void;
}

/** Greatest number of calls that are kept for one file; beyond it the oldest is dropped. */
const MOST_KEPT = 1_000;

export function createCallLog(): CallLog {
  const running = new AsyncLocalStorage<string>();
  const kept = new Map<string, EmbedLogEntry[]>();
  return {
    note(call) {
      const path = running.getStore();
      if (path === undefined) return;
      const calls = kept.get(path);
      if (calls === undefined) kept.set(path, [call]);
      else if (calls.push(call) > MOST_KEPT) calls.shift();
    },
    during: (path, work) => running.run(path, work),
    flush(path, write) {
      const calls = kept.get(path);
      if (calls === undefined) return;
      write(calls);
      kept.delete(path);
    },
  };
}
