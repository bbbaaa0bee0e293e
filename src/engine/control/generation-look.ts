/** Tells whether the control database has changed since it was last read, without a database read for each check. */

import type { ControlFile } from './control-file.ts';

/**
 * Longest time for which a change by another process goes unnoticed (ms). In a file, an access reads the generation
 * counter if the last read is longer ago than this. In PostgreSQL a background thread reads it at this interval.
 */
export const GENERATION_LOOK_MS = 250;

/**
 * Tells the owner of cached data whether the control database has changed since the data was read. Each cache has its
 * own.
 */
export interface GenerationLook {
  /** Runs `work` on one snapshot of the control database, and remembers the value of the generation counter there. */
  read<T>(work: () => T): T;
  /**
   * Whether the generation counter has another value than the one that `read` or `follow` remembered.
   * @param maxAgeMs how old the last check of the counter in a file may be (ms); 0 reads it now, and any other value
   *   takes the number in PostgreSQL that the background thread read last
   * @throws EngineError `unavailable` if PostgreSQL has not answered for 5 s, since the cached data may be outdated
   */
  hasChanged(maxAgeMs: number): boolean;
  /**
   * Remembers `next` as the current generation after a change by this process, so that its own change causes no new
   * read.
   * @returns false if other processes made changes before it: then nothing is remembered, and the caller must read
   *   everything again
   */
  follow(next: number): boolean;
}

/** Makes the change detection for a control database, which the caller closes. */
export function createGenerationLook(file: ControlFile): GenerationLook {
  const { statements, watched } = file;
  const readGeneration = () => statements.readGeneration.get()!.generation;
  let generation: number | undefined;
  /** Time of the last check by the monotonic clock (ms), since the wall clock may be set back. */
  let lookedAt = 0;
  /**
   * Monotonic time at which the last `read` or `follow` had ended (ns), in PostgreSQL. Only a check after it can show a
   * change.
   */
  let wasReadAt = 0n;

  return {
    read(work) {
      const result = file.read(() => {
        lookedAt = performance.now();
        generation = readGeneration();
        return work();
      });
      if (watched !== null) wasReadAt = process.hrtime.bigint();
      return result;
    },
    hasChanged(maxAgeMs) {
      if (watched !== null) {
        const { number, readAt } = watched.latest();
        if (maxAgeMs > 0) return readAt > wasReadAt && number !== generation;
      } else if (performance.now() - lookedAt < maxAgeMs) return false;
      lookedAt = performance.now();
      return readGeneration() !== generation;
    },
    follow(next) {
      if (generation === undefined || next !== generation + 1) return false;
      generation = next;
      if (watched !== null) wasReadAt = process.hrtime.bigint();
      return true;
    },
  };
}
