import { forEachRun } from '../text/tokens.ts';

/**
 * Estimated tokens of any part of one text, for looking ahead: an exact count costs a hundred times as much. Numbers of
 * tokens need not be whole; offsets are UTF-16 units.
 */
export interface TokenEstimate {
  /** Returns the estimated tokens between two offsets. */
  between(start: number, end: number): number;
  /** Returns the furthest offset with about `tokens` tokens, at most, between `start` and it; at least `start`. */
  after(start: number, tokens: number): number;
  /** Returns the earliest offset with about `tokens` tokens, at most, between it and `end`; at most `end`. */
  before(end: number, tokens: number): number;
}

/**
 * Prepares estimates for a text, which is read once. Each question is then answered by a look at, or a binary search
 * in, sums of 8 bytes per 32 characters.
 */
export function estimateTokens(text: string): TokenEstimate {
  const sums = sumsOf(text);
  const last = sums.length - 1;
  const sumAt = (step: number) => sums[Math.min(step, last)] ?? 0;
  const costBefore = (offset: number) => {
    const step = Math.floor(offset / STEP);
    return sumAt(step) + ((sumAt(step + 1) - sumAt(step)) * (offset - step * STEP)) / STEP;
  };
  /** Returns the last offset before which the text costs at most `cost`, in estimated tokens. */
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

/** Characters between two sums; the estimate is linear between them. */
const STEP = 32;
/** Least cost of a character, so that nothing counts as free: the estimate of a single blank is 0. */
const MIN_TOKENS_PER_CHARACTER = 1 / 1_024;

/** Returns the estimated tokens before every 32nd character; the last sum is drawn out to a full step. */
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
