import { randomBytes } from 'node:crypto';
import { EngineError, type Logger } from '../engine/index.ts';

/**
 * The runs in progress in a worker; a run is the work on one batch of jobs of a file. Each run has a unique name, which
 * is the owner of its leases. If a run never ends, its leases are no longer renewed and its jobs fall due, like those
 * of a worker that died.
 */
export interface Runs {
  /**
   * Runs `work` on a file under a new name, and returns its result.
   * @param work gets the name that its leases are to bear
   * @throws whatever `work` threw; EngineError `unavailable` if it has not ended after `mostMs`: `work` is not stopped,
   *   but its leases are not renewed any more, and its jobs become due again as if its worker had died
   */
  run<T>(path: string, work: (owner: string) => Promise<T>): Promise<T>;
  /** Returns the names of the runs in progress on a file, whose leases are to be renewed. */
  ownersOf(path: string): readonly string[];
  /** Returns the paths of the files on which a run is in progress, each once. */
  paths(): readonly string[];
}

/**
 * Longest time that a run may take by default (ms). It is an hour, since a provider may allow only a few calls a
 * minute. A run that takes longer waits for something that never comes.
 */
const MAX_RUN_MS = 3_600_000;

export function createRuns({ logger, mostMs = MAX_RUN_MS }: { logger: Logger; mostMs?: number | undefined }): Runs {
  const underWay = new Map<string, string>();
  return {
    async run(path, work) {
      // The name is short, since it is in the row of every job under way: a row that grows may no longer fit its page.
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
    paths: () => [...new Set(underWay.values())],
  };
}
