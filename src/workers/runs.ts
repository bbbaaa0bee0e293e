import { randomBytes } from 'node:crypto';
import { EngineError, type Logger } from '../engine/index.ts';

/**
 * The runs under way in a worker, each under a name of its own: the jobs of a run that ended without a word fall due
 * like a dead worker's.
 */
export interface Runs {
  /**
   * Runs work on a file under a new name, and returns its result.
   * @param work gets the name that its leases are to bear
   * @throws whatever `work` threw; EngineError `unavailable` if it has not ended after `mostMs`: its leases are not
   *   renewed any more, and its jobs are taken back as if its worker had died
   */
  run<T>(path: string, work: (owner: string) => Promise<T>): Promise<T>;
  /** Lists the names of the runs that work on a file, whose leases are to be renewed. */
  ownersOf(path: string): readonly string[];
}

/**
 * Longest time that a run may take (ms), which allows for patience with a provider that takes a few calls a minute. A
 * longer run waits for something that never comes.
 */
const MAX_RUN_MS = 3_600_000;

export function createRuns({ logger, mostMs = MAX_RUN_MS }: { logger: Logger; mostMs?: number | undefined }): Runs {
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
