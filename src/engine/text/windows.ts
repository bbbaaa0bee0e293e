import { assert } from '../errors.ts';
import { forEachRun, MAX_RUN_CENTITOKENS } from './tokens.ts';

export interface WindowOptions {
  /** Most tokens in a window by `estimateTokens`; at least 64. */
  readonly sizeTokens: number;
  /** Tokens that a window shares with the one before it; at most half the size. */
  readonly overlapTokens: number;
}

/** Offsets into the text in UTF-16 code units, end exclusive. */
export interface TextWindow {
  readonly start: number;
  readonly end: number;
}

const DEFAULT_OPTIONS: WindowOptions = { sizeTokens: 512, overlapTokens: 50 };
/** No run of characters costs more tokens a code unit, accents included. */
const MAX_TOKENS_PER_UNIT = 3;

/**
 * Cuts a text into overlapping windows that an embedder can take. They cover the text in order, begin and end between
 * words where there are any in reach, and never cut a surrogate pair. A text that fits is one window.
 */
export function windowsOf(text: string, options: WindowOptions = DEFAULT_OPTIONS): TextWindow[] {
  const { sizeTokens, overlapTokens } = options;
  assert(sizeTokens >= 64 && overlapTokens >= 0 && overlapTokens <= sizeTokens / 2, 'window size and overlap');
  if (text.length * MAX_TOKENS_PER_UNIT <= sizeTokens) return [{ start: 0, end: text.length }];
  const runs = measureRuns(text);
  const size = sizeTokens * 100;
  const windows: TextWindow[] = [];
  let first = 0;
  for (;;) {
    const last = runs.lastWithin(first, size);
    windows.push({ start: runs.offset(first), end: runs.offset(last) });
    if (last === runs.count) return windows;
    first = runs.firstWithin(last, overlapTokens * 100, first + 1);
  }
}

/** The boundaries of a text's runs, 0..count, with the cost of all that precedes each. */
interface Runs {
  readonly count: number;
  offset(boundary: number): number;
  /** The furthest boundary that keeps the cost from `first` within `size`, moved back to a word's edge if one is near. */
  lastWithin(first: number, size: number): number;
  /** The earliest boundary from `least` on that is at most `cost` before `last`, moved on to a word's start if one is near. */
  firstWithin(last: number, cost: number, least: number): number;
}

function measureRuns(text: string): Runs {
  const offsets: number[] = [0];
  const costs: number[] = [0];
  let total = 0;
  forEachRun(text, (_start, end, cost) => {
    total += cost;
    offsets.push(end);
    costs.push(total);
  });
  const count = offsets.length - 1;
  const offset = (boundary: number) => offsets[boundary] ?? text.length;
  const costBefore = (boundary: number) => costs[boundary] ?? total;
  const isEdge = (boundary: number) => boundary === count || isWordEdge(text, offset(boundary));
  return {
    count,
    offset,
    lastWithin(first, size) {
      let last = first + 1;
      while (last < count && costBefore(last + 1) - costBefore(first) <= size) last++;
      let edge = last;
      while (!isEdge(edge) && costBefore(last) - costBefore(edge) < size / 8 && edge > first + 1) edge--;
      return isEdge(edge) ? edge : last;
    },
    firstWithin(last, cost, least) {
      let first = last;
      while (first > least && costBefore(last) - costBefore(first - 1) <= cost) first--;
      let edge = first;
      while (!isEdge(edge) && edge < last && costBefore(edge) - costBefore(first) < MAX_RUN_CENTITOKENS) edge++;
      return isEdge(edge) ? edge : first;
    },
  };
}

/** True before a word: a letter, digit or CJK character that does not continue one. */
function isWordEdge(text: string, offset: number): boolean {
  const before = text.charCodeAt(offset - 1);
  const after = text.charCodeAt(offset);
  return (isSpace(before) && !isSpace(after)) || before >= 0x2e80;
}

function isSpace(code: number): boolean {
  return code <= 32 || code === 0xa0 || code === 0x3000;
}
