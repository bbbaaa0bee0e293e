import { randomBytes } from 'node:crypto';
import { EngineError } from '../engine/errors.ts';
import type { Logger } from '../engine/ports.ts';

/** Runs under way, each under a name of its own: jobs of one that ended without a word fall due like a dead worker's. */
export interface Runs {
  /**
   * @param work bears the name that its leases bear
   * @throws EngineError `unavailable` if it is still at it after `mostMs`: its leases are not renewed any more, and its jobs are taken
   *   back as if it had died
   */
  run<T>(path: string, work: (owner: string) => Promise<T>): Promise<T>;
  /** Of the runs that work on this file, whose leases are to be renewed. */
  ownersOf(path: string): readonly string[];
}

/** Patience with a provider that allows a few calls a minute included. Whatever takes longer waits for what never comes. */
const RUN_MOST_MS = 3_600_000;

export function createRuns({ logger, mostMs = RUN_MOST_MS }: { logger: Logger; mostMs?: number | undefined }): Runs {
  const underWay = new Map<string, string>();
  return {
    async run(path, work) {
      // Short, since it stands in the row of every job under way: rows that grow do not fit their pages any more.
      const owner = randomBytes(9).toString('base64url');
      underWay.set(owner, path);
      let timer: NodeJS.Timeout | undefined;
      const tooLong = new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          logger.error({ afterMs: mostMs }, 'run_given_up');
          reject(new EngineError('unavailable', 'a step never came to its end'));
        }, mostMs);
      });
      try {
        return await Promise.race([work(owner), tooLong]);
      } finally {
        clearTimeout(timer);
        underWay.delete(owner);
      }
    },
    ownersOf: (path) => [...underWay].flatMap(([owner, file]) => (file === path ? [owner] : [])),
  };
}
