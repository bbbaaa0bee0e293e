/** Tells whether the control database has changed since it was read, without a read of it for each question. */

import type { ControlFile } from './control-file.ts';

/**
 * Longest time (ms) for which a change by another process goes unnoticed. An access to a file that comes later than
 * this after the last look reads the generation counter; in PostgreSQL a thread reads it at this interval, `WATCH_MS`.
 */
export const GENERATION_LOOK_MS = 250;

export interface GenerationLook {
  /** Runs `work` on one snapshot of the control database, and notes its generation. */
  read<T>(work: () => T): T;
  /**
   * Tells whether the generation has changed since `read`. The look at it may be up to `maxAgeMs` old; 0 looks now.
   * @throws EngineError `unavailable` if PostgreSQL has not answered for `SILENT_MS`: what was read may be long over
   */
  hasChanged(maxAgeMs: number): boolean;
  /**
   * Notes that a change of this process made the generation `next`, of which the caller knows all that changed.
   * @returns false if there were other changes before it, so that all is to be read again
   */
  follow(next: number): boolean;
}

/** Makes a look at a control database, which the caller closes. */
export function createGenerationLook(file: ControlFile): GenerationLook {
  const { statements, watched } = file;
  const readGeneration = () => statements.readGeneration.get()!.generation;
  let generation: number | undefined;
  /** Time of the last look by the monotonic clock, as the wall clock may be set back (ms). */
  let lookedAt = 0;
  /** Time by which all that was read was there (ns); only a later look may tell of a change. */
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
