import { randomBytes } from 'node:crypto';
import { EngineError, type Logger } from '../engine/index.ts';

/**
 * Runs under way, each under a name of its own: the jobs of a run that ended without a word fall due like a dead
 * worker's.
 */
export interface Runs {
  /**
   * @param work gets the name that its leases are to bear
   * @throws EngineError `unavailable` if the work has not ended after `mostMs`: its leases are not renewed any more,
   *   and its jobs are taken back as if its worker had died
   */
  run<T>(path: string, work: (owner: string) => Promise<T>): Promise<T>;
  /** Lists the names of the runs that work on a file, whose leases are to be renewed. */
  ownersOf(path: string): readonly string[];
}

/**
 * Longest a run may take (ms), patience with a provider that allows a few calls a minute included. A longer one waits
 * for what never comes.
 */
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
