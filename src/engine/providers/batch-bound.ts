/** How many tokens a call may have so that the provider takes it. */
export interface BatchBound {
  tokens(): number;
  /** A call of so many tokens was answered. */
  noteAnswer(tokens: number): void;
  /** A call of several texts was refused for what was asked in a minute (429), after so long. */
  noteLimited(tokens: number, ms: number): void;
}

/** No less than a window of a memory. */
export const BOUND_LEAST = 512;
/** Refusals in a row, each of a call that began after the one before, that halve the bound. */
export const REFUSALS_MOST = 3;
/** Answers that double it again. */
const ANSWERS_ENOUGH = 32;

/**
 * A call that is larger than what a provider takes in a minute is refused in any minute, and so is the same call for ever after. Not all
 * say how much they take, so calls become smaller while they are refused, but not smaller than one that was answered before: that one only
 * came too soon.
 * @param most tokens
 */
export function createBatchBound(most: number): BatchBound {
  let bound = most;
  let refusals = 0;
  let refusedAt = -Infinity;
  let answers = 0;
  let largestAnswered = 0;
  return {
    tokens: () => bound,
    noteAnswer(tokens) {
      refusals = 0;
      largestAnswered = Math.max(largestAnswered, tokens);
      answers += 1;
      if (answers < ANSWERS_ENOUGH) return;
      answers = 0;
      bound = Math.min(most, 2 * bound);
    },
    noteLimited(tokens, ms) {
      const now = performance.now();
      if (tokens <= largestAnswered || now - ms < refusedAt) return;
      refusedAt = now;
      refusals += 1;
      answers = 0;
      if (refusals < REFUSALS_MOST) return;
      refusals = 0;
      bound = Math.min(bound, Math.max(BOUND_LEAST, largestAnswered, Math.floor(tokens / 2)));
    },
  };
}
