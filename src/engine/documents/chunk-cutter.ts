import type { Boundaries } from './boundaries.ts';
import { createChunkEndFinder, type ChunkEndFinder } from './chunk-ends.ts';
import { createOverlapFinder } from './chunk-overlaps.ts';
import { spanCounterOf, type SpanCounter } from './count-spans.ts';
import type { TokenCounter } from './count-tokens.ts';
import { firstVisible, isSplitAt } from './cut-points.ts';
import { estimateTokens, type TokenEstimate } from './token-estimate.ts';

/** The limits of the chunks of a text. */
export interface CutLimits {
  /** Greatest number of tokens in a chunk, including the text that it repeats of the chunk before; at least 64. */
  readonly sizeTokens: number;
  /**
   * Greatest number of tokens at the start of a chunk that repeat the end of the chunk before; 0 for none, at most half
   * of `sizeTokens`.
   */
  readonly overlapTokens: number;
  readonly countTokens: TokenCounter;
}

/**
 * A chunk: its offsets in UTF-16 code units, `end` exclusive, and its exact number of tokens, including repeated text.
 */
interface Cut {
  readonly start: number;
  readonly end: number;
  readonly tokens: number;
}

/** Cuts one text into chunks, from its start to its end. */
export interface Cutter {
  /**
   * Cuts the next chunk, which repeats the text from `start` to `own` and continues with new text. It starts at `own`
   * instead, without repeated text, if with that text no new text would fit, or if the code block or table row that
   * follows would not fit whole.
   * @param start offset at which the repeated text begins; `own` for none
   * @param own end of the last chunk, at which the new text begins; before the end of the text
   */
  next(start: number, own: number): Cut;
  /**
   * Returns the offset at which the chunk after the one from `start` to `end` begins. It is after `start`: the text
   * from there to `end` is repeated. It is `end` if nothing is to be repeated.
   */
  overlapStart(start: number, end: number): number;
}

/** The state of cutting one text. */
interface Cutting {
  readonly text: string;
  readonly sizeTokens: number;
  /** Greatest length of a chunk, in UTF-16 code units. */
  readonly maxLength: number;
  readonly countTokens: SpanCounter;
  readonly estimate: TokenEstimate;
  readonly endIn: ChunkEndFinder;
  /**
   * Correction of the token estimate: exact tokens divided by estimated tokens of the last chunk; 1 before the first.
   */
  ratio: number;
}

/** Makes a cutter for a text, which must be cut from its start to its end. */
export function createCutter(text: string, boundaries: Boundaries, limits: CutLimits): Cutter {
  const { sizeTokens, overlapTokens } = limits;
  const countTokens = spanCounterOf(text, limits.countTokens);
  const estimate = estimateTokens(text);
  const overlapIn = createOverlapFinder(text, boundaries, estimate);
  const endIn = createChunkEndFinder(text, boundaries, estimate);
  const maxLength = sizeTokens * MAX_CHARACTERS_PER_TOKEN;
  const cutting: Cutting = { text, sizeTokens, maxLength, countTokens, estimate, endIn, ratio: 1 };

  return {
    next(start, own) {
      return (
        restFrom(cutting, start) ??
        longestFrom(cutting, start, own) ??
        longestFrom(cutting, own, own) ??
        oneCharacter(cutting, own)
      );
    },

    overlapStart(start, end) {
      if (overlapTokens === 0 || end === text.length || boundaries.headingLevel(end) > 0) return end;
      for (let budget = overlapTokens / cutting.ratio; budget >= 1;) {
        const reach = Math.max(estimate.before(end, budget), start + 1, end - overlapTokens * MAX_CHARACTERS_PER_TOKEN);
        const from = overlapIn(start, reach, end);
        const tokens = from === end ? 0 : countTokens(from, end);
        if (tokens <= overlapTokens) return firstVisible(text, from, end) === undefined ? end : from;
        budget *= Math.min(0.95, (overlapTokens / tokens) * 0.98);
      }
      return end;
    },
  };
}

/**
 * Makes one chunk of all text from `start` on. Returns undefined if it does not fit into one chunk. The tokens are
 * counted only if it may fit by the estimate.
 */
function restFrom(cutting: Cutting, start: number): Cut | undefined {
  const { text, estimate, sizeTokens } = cutting;
  if (estimate.between(start, text.length) * cutting.ratio > sizeTokens * 1.25) return undefined;
  return fitting(cutting, start, text.length);
}

/**
 * Cuts the longest chunk that begins at `start` and ends after `own`. It finds an end by the token estimate, counts the
 * tokens exactly, and corrects the estimate: it tries a shorter chunk if the first is too long, and a longer one if it
 * is far too short. Returns undefined if no such chunk fits, for example because the repeated text from `start` to
 * `own` takes too many tokens.
 */
function longestFrom(cutting: Cutting, start: number, own: number): Cut | undefined {
  const { text, sizeTokens, maxLength, countTokens, estimate } = cutting;
  const fits = (from: number, to: number) => fitting(cutting, from, to) !== undefined;
  let budget = (sizeTokens * AIM) / cutting.ratio;
  let best: Cut | undefined;
  for (let looks = 0; looks < MAX_LOOKS || best === undefined; looks++) {
    const limit = Math.min(estimate.after(start, budget), start + maxLength, text.length);
    if (limit <= own) return best;
    const end = limit === text.length ? limit : cutting.endIn(start, own, limit, fits);
    if (end === undefined) return best;
    const tokens = countTokens(start, end);
    const measured = tokens / Math.max(1, estimate.between(start, end));
    if (tokens > sizeTokens || end - start > maxLength) {
      if (best !== undefined) return best;
      budget *= Math.min(0.95, (sizeTokens * AIM) / tokens);
      continue;
    }
    cutting.ratio = clamp(measured, 1 / MAX_RATIO, MAX_RATIO);
    best = { start, end, tokens };
    const isShort = estimate.between(start, limit) * cutting.ratio < sizeTokens * SHORT && limit < start + maxLength;
    if (!isShort || limit === text.length) return best;
    budget = (sizeTokens * AIM) / cutting.ratio;
  }
  return best;
}

function fitting({ sizeTokens, maxLength, countTokens }: Cutting, start: number, end: number): Cut | undefined {
  if (end - start > maxLength) return undefined;
  const tokens = countTokens(start, end);
  return tokens <= sizeTokens ? { start, end, tokens } : undefined;
}

function oneCharacter({ text, countTokens }: Cutting, start: number): Cut {
  const end = start + (isSplitAt(text, start + 1) ? 2 : 1);
  return { start, end, tokens: countTokens(start, end) };
}

/**
 * Greatest number of UTF-16 code units for each token that a chunk, or an overlap, may have. Lines of dots and runs of
 * blanks take almost no tokens, so without this limit one chunk of them could be megabytes long.
 */
const MAX_CHARACTERS_PER_TOKEN = 16;
/**
 * Share of a chunk's size (in tokens) that the first attempt fills by the estimate. It is below 1, so that a chunk is
 * rarely too long.
 */
const AIM = 0.98;
/**
 * Share of a chunk's size (in tokens). If the text up to the limit of an attempt has fewer by the corrected estimate,
 * the chunk counts as far too short, and a longer one is tried.
 */
const SHORT = 0.85;
/**
 * Number of attempts at a chunk, those that were too long included, after which one that fits is not improved further.
 * While none fits, attempts go on.
 */
const MAX_LOOKS = 4;
/**
 * Greatest factor by which token estimates are corrected, up or down. Only texts of a few characters would need a
 * greater factor, and they say nothing about the text that follows.
 */
const MAX_RATIO = 64;

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
