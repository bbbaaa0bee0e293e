import { assert } from '../errors.ts';
import { forEachRun, MAX_RUN_CENTITOKENS } from './tokens.ts';

/** The size and the overlap of windows. */
export interface WindowOptions {
  /** Greatest number of tokens of a window, as `estimateTokens` counts them; at least 64. */
  readonly sizeTokens: number;
  /** Greatest number of tokens that a window shares with the window before it; 0 to half of `sizeTokens`. */
  readonly overlapTokens: number;
}

/** A window of a text, as offsets in UTF-16 code units; the end is exclusive. */
export interface TextWindow {
  readonly start: number;
  readonly end: number;
}

/**
 * The windows for which memories get their embeddings: 512 tokens, which every usual embedding model accepts, with an
 * overlap of 50 tokens.
 */
const EMBEDDING_WINDOWS: WindowOptions = { sizeTokens: 512, overlapTokens: 50 };
/** Upper bound on the estimated tokens of one UTF-16 code unit, accents included. */
const MAX_TOKENS_PER_UNIT = 3;

/**
 * Cuts a text into overlapping windows of a size that an embedding model accepts. The windows cover the text in order,
 * begin and end between words if a gap between words is near, and never split a surrogate pair. A short text gives one
 * window, and an empty text gives the window 0..0.
 */
export function windowsOf(text: string, options: WindowOptions = EMBEDDING_WINDOWS): TextWindow[] {
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

/**
 * The boundaries between a text's runs (`forEachRun`), numbered 0 to `count`, with the estimated cost of the text
 * before each boundary, in hundredths of a token.
 */
interface Runs {
  readonly count: number;
  /** Returns the offset of a boundary in the text, in UTF-16 code units. */
  offset(boundary: number): number;
  /**
   * Returns the last boundary for which the text from the boundary `first` on costs at most `size` hundredths of a
   * token, moved back to the edge of a word if one is near. It is at least `first` + 1.
   */
  lastWithin(first: number, size: number): number;
  /**
   * Returns the first boundary, not before the boundary `least`, from which the text up to the boundary `last` costs at
   * most `cost` hundredths of a token, moved forward to the start of a word if one is near.
   */
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

/** Tells whether a word may begin at the offset: after a blank, and after any character from U+2E80 on, such as CJK. */
function isWordEdge(text: string, offset: number): boolean {
  const before = text.charCodeAt(offset - 1);
  const after = text.charCodeAt(offset);
  return (isSpace(before) && !isSpace(after)) || before >= 0x2e80;
}

function isSpace(code: number): boolean {
  return code <= 32 || code === 0xa0 || code === 0x3000;
}
