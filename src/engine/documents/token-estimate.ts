import { forEachRun } from '../text/tokens.ts';

/**
 * Estimated numbers of tokens for any part of one text, since an exact count takes a hundred times as long. They need
 * not be whole numbers. Offsets are in UTF-16 code units.
 */
export interface TokenEstimate {
  /** Returns the estimated number of tokens between two offsets. */
  between(start: number, end: number): number;
  /**
   * Returns the last offset such that the text from `start` to it has at most about `tokens` tokens; at least `start`.
   */
  after(start: number, tokens: number): number;
  /** Returns the first offset such that the text from it to `end` has at most about `tokens` tokens; at most `end`. */
  before(end: number, tokens: number): number;
}

/**
 * Reads a text once and prepares estimates for its parts. Each estimate then comes from cumulative sums, which take 8
 * bytes for each 32 characters, or from a binary search in them.
 */
export function estimateTokens(text: string): TokenEstimate {
  const sums = sumsOf(text);
  const last = sums.length - 1;
  const sumAt = (step: number) => sums[Math.min(step, last)] ?? 0;
  const costBefore = (offset: number) => {
    const step = Math.floor(offset / STEP);
    return sumAt(step) + ((sumAt(step + 1) - sumAt(step)) * (offset - step * STEP)) / STEP;
  };
  /** Returns the last offset such that the text before it has at most `cost` estimated tokens. */
  const offsetOf = (cost: number) => {
    let low = 0;
    let high = last;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (sumAt(middle) <= cost) low = middle;
      else high = middle - 1;
    }
    const width = sumAt(low + 1) - sumAt(low);
    return Math.min(text.length, low * STEP + (width > 0 ? Math.floor(((cost - sumAt(low)) / width) * STEP) : STEP));
  };
  return {
    between: (start, end) => costBefore(end) - costBefore(start),
    after: (start, tokens) => Math.max(start, offsetOf(costBefore(start) + tokens)),
    before: (end, tokens) => Math.min(end, offsetOf(Math.max(0, costBefore(end) - tokens)) + 1),
  };
}

/** Number of characters between two cumulative sums; the estimate is linear between them. */
const STEP = 32;
/**
 * Least number of tokens that each character counts. The estimate of a single blank is 0, but no character may be free.
 */
const MIN_TOKENS_PER_CHARACTER = 1 / 1_024;

/** Returns the estimated number of tokens before every 32nd character; the last sum is extrapolated to a full step. */
function sumsOf(text: string): Float64Array {
  const sums = new Float64Array(Math.ceil(text.length / STEP) + 1);
  let total = 0;
  let step = 1;
  forEachRun(text, (_start, end, centitokens) => {
    total += centitokens / 100;
    for (; step * STEP <= end; step++) sums[step] = total + end * MIN_TOKENS_PER_CHARACTER;
  });
  const rest = text.length - (step - 1) * STEP;
  const before = sums[step - 1] ?? 0;
  if (rest > 0) sums[step] = before + ((total + text.length * MIN_TOKENS_PER_CHARACTER - before) * STEP) / rest;
  return sums;
}
