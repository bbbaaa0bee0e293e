/**
 * Runs readings speculatively, so that their first queries share a round trip: each runs until it needs an answer that
 * is not there, and is left at that point. See `Foresight.readSpeculatively`.
 */

/** Error that leaves a reading at its first unanswered query. It is caught in this file. */
const UNANSWERED = new Error('a query of a speculative read has no answer yet');

export interface SpeculativeReads {
  /** Whether a reading runs speculatively at present, so that no answer may be waited for. */
  readonly isOn: boolean;
  /** Ends the reading that runs speculatively at this point, by throwing an error that `run` catches. */
  leave(): never;
  /** Runs each reading until it ends, or is left. Throws what a reading throws otherwise. */
  run(readings: readonly (() => unknown)[]): void;
}

export function createSpeculativeReads(): SpeculativeReads {
  let isOn = false;
  return {
    get isOn() {
      return isOn;
    },
    leave() {
      throw UNANSWERED;
    },
    run(readings) {
      const wasOn = isOn;
      for (const reading of readings) {
        isOn = true;
        try {
          reading();
        } catch (error) {
          if (error !== UNANSWERED) throw error;
        } finally {
          isOn = wasOn;
        }
      }
    },
  };
}
