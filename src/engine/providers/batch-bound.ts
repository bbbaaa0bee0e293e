/**
 * A bound on the tokens of a call of several texts, which adapts to what the provider accepts. A single text may have
 * more. Numbers of tokens are estimates.
 */
export interface BatchBound {
  /** Returns the greatest number of tokens that a call of several texts may have now. */
  tokens(): number;
  /** Records that a call of `tokens` tokens was answered. */
  noteAnswer(tokens: number): void;
  /**
   * Records that a call of several texts was refused as too much for one minute (429). Call it at once, with the time
   * (ms) since the call began. It is ignored if a call of as many tokens was answered before.
   */
  noteLimited(tokens: number, ms: number): void;
}

/** Smallest bound (tokens): a window of a memory has up to 512, and calls must be able to carry one. */
export const MIN_BOUND = 512;
/**
 * Number of refusals in a row that lower the bound to half of the last refused call, but not below `MIN_BOUND` or the
 * largest call that was answered. A refusal counts only if its call had more tokens than that call, and began after
 * the refusal that counted last, so that calls which ran at the same time count as one.
 */
export const MAX_REFUSALS = 3;
/**
 * Number of answers after which the bound is doubled, up to its maximum. They are counted since it was last doubled, or
 * since a refusal counted.
 */
const ANSWERS_TO_DOUBLE = 32;

/**
 * Creates a bound that shrinks while calls are refused. A call with more tokens than the provider accepts in a minute
 * would be refused forever, and not all providers say how many they accept. The bound does not fall below 512 tokens or
 * the largest call that was answered: a refusal of such a call only means that it came too soon.
 * @param maxTokens the bound at the beginning, and its maximum
 */
export function createBatchBound(maxTokens: number): BatchBound {
  let bound = maxTokens;
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
      if (answers < ANSWERS_TO_DOUBLE) return;
      answers = 0;
      bound = Math.min(maxTokens, 2 * bound);
    },
    noteLimited(tokens, ms) {
      const now = performance.now();
      if (tokens <= largestAnswered || now - ms < refusedAt) return;
      refusedAt = now;
      refusals += 1;
      answers = 0;
      if (refusals < MAX_REFUSALS) return;
      refusals = 0;
      bound = Math.min(bound, Math.max(MIN_BOUND, largestAnswered, Math.floor(tokens / 2)));
    },
  };
}
