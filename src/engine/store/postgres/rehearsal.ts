/**
 * Rehearses readings, so that what several of them ask first shares a round trip: each runs until it needs an answer
 * that is not there, and is left at that point. See `Foresight.rehearse`.
 */

/** Error that leaves a reading at its first open question. It is caught in this file. */
const OPEN_QUESTION = new Error('a question of a rehearsal is open');

export interface Rehearsal {
  /** Whether a reading is being rehearsed, so that nothing may be waited for. */
  readonly isOn: boolean;
  /** Leaves the reading that is being rehearsed. */
  leave(): never;
  /** Runs each reading until it ends, or is left. Throws what a reading throws otherwise. */
  run(readings: readonly (() => unknown)[]): void;
}

export function createRehearsal(): Rehearsal {
  let isOn = false;
  return {
    get isOn() {
      return isOn;
    },
    leave() {
      throw OPEN_QUESTION;
    },
    run(readings) {
      const wasOn = isOn;
      for (const reading of readings) {
        isOn = true;
        try {
          reading();
        } catch (error) {
          if (error !== OPEN_QUESTION) throw error;
        } finally {
          isOn = wasOn;
        }
      }
    },
  };
}
