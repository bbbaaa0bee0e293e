import { assert } from '../errors.ts';
import type { Chunk, PageStart } from '../ports.ts';
import { sentences } from '../text/sentences.ts';
import { forEachRun } from '../text/tokens.ts';
import { BLOCK, GROUP, LINE, SECTION, TIED, boundariesOf, type Boundaries } from './boundaries.ts';
import { spanCounterOf } from './count-spans.ts';
import type { TokenCounter } from './count-tokens.ts';
import { headingText } from './outline.ts';
import type { TextKind } from './parsed-document.ts';

export { outlineOf } from './outline.ts';

export interface ChunkOptions {
  /** Most tokens in a chunk, what it repeats included; at least 64. */
  readonly sizeTokens: number;
  /** Most tokens that a chunk repeats of the one before; at most half the size. */
  readonly overlapTokens: number;
  readonly kind: TextKind;
  readonly pages: readonly PageStart[];
  /** Exact tokens of a text; linear in its length. */
  readonly countTokens: TokenCounter;
}

/**
 * Cuts a text into chunks of at most `sizeTokens`, each of which repeats up to `overlapTokens` of the one before. They cover the
 * text: the first starts at 0, each next one at or before the end of the last and after its start, the last ends with the text.
 *
 * A chunk ends before a section once a third of it is full, before a block (paragraph, list, table, code), an outer item or
 * a definition once half is, before another item, row or line of code once two thirds are, then between sentences, words and
 * anywhere, the later the worse the place. Of several sections the outermost begins the next chunk: a chunk that spans two chapters answers for neither. A third, because a
 * chunk that had to be half full tears every section that is a bit longer than half. Fenced code and table rows that fit a chunk
 * are never cut; a heading stays with what follows it, unless that is code or a row that fits only without.
 *
 * What starts with a heading repeats nothing: the heading and its path say where it belongs, and the end of another section would only
 * dilute it. What is repeated begins at a block, line or sentence, never before the heading that it stands under.
 */
export function chunkText(text: string, options: ChunkOptions): Chunk[] {
  const { sizeTokens, overlapTokens, kind, pages } = options;
  assert(sizeTokens >= 64 && overlapTokens >= 0 && overlapTokens <= sizeTokens / 2, 'chunk size and overlap');
  const boundaries = boundariesOf(text, kind);
  const cutter = cutterOf(text, boundaries, options);
  const headings = headingTrail(text, boundaries);
  const chunks: Chunk[] = [];
  let start = 0;
  let own = 0;
  while (own < text.length) {
    const cut = cutter.next(start, own);
    chunks.push({
      startOffset: cut.start,
      endOffset: cut.end,
      headingPath: headings.above(firstVisible(text, own, cut.end) ?? own),
      ...pageRange(pages, cut.start, cut.end),
      tokens: cut.tokens,
    });
    own = cut.end;
    start = cutter.overlapStart(cut.start, cut.end);
  }
  return chunks;
}

interface Cut {
  readonly start: number;
  readonly end: number;
  readonly tokens: number;
}

interface Cutter {
  /**
   * The chunk that repeats what stands from `start` to `own` and goes on from there. It repeats nothing where that leaves no room
   * for the code or table row at `own`.
   */
  next(start: number, own: number): Cut;
  /** Where the chunk after the one from `start` to `end` begins: after `start`, at most `end`. */
  overlapStart(start: number, end: number): number;
}

function cutterOf(text: string, boundaries: Boundaries, options: ChunkOptions): Cutter {
  const { sizeTokens, overlapTokens } = options;
  const countTokens = spanCounterOf(text, options.countTokens);
  const estimate = estimateOf(text);
  const places = placesOf(text, boundaries, estimate);
  const maxLength = sizeTokens * MAX_CHARACTERS_PER_TOKEN;
  /** Exact tokens for an estimated one, as the last chunk had it. */
  let ratio = 1;

  return {
    next(start, own) {
      return restFrom(start) ?? longestFrom(start, own) ?? longestFrom(own, own) ?? oneCharacter(own);
    },

    overlapStart(start, end) {
      if (overlapTokens === 0 || end === text.length || boundaries.headingLevel(end) > 0) return end;
      for (let budget = overlapTokens / ratio; budget >= 1;) {
        const reach = Math.max(estimate.before(end, budget), start + 1, end - overlapTokens * MAX_CHARACTERS_PER_TOKEN);
        const from = places.overlapIn(start, reach, end);
        const tokens = from === end ? 0 : countTokens(from, end);
        if (tokens <= overlapTokens) return firstVisible(text, from, end) === undefined ? end : from;
        budget *= Math.min(0.95, (overlapTokens / tokens) * 0.98);
      }
      return end;
    },
  };

  /** All that is left, if it fits. Only counted where it may well fit. */
  function restFrom(start: number): Cut | undefined {
    if (estimate.between(start, text.length) * ratio > sizeTokens * 1.25) return undefined;
    return fitting(start, text.length);
  }

  /**
   * Looks as far as the estimate says, counts, and looks again where that was wrong: each time less far where it was too much, further
   * where it was far too little. Undefined where nothing fits, or only without what is repeated.
   */
  function longestFrom(start: number, own: number): Cut | undefined {
    let budget = (sizeTokens * AIM) / ratio;
    let best: Cut | undefined;
    for (let looks = 0; looks < MOST_LOOKS || best === undefined; looks++) {
      const limit = Math.min(estimate.after(start, budget), start + maxLength, text.length);
      if (limit <= own) return best;
      const end = limit === text.length ? limit : places.endIn(start, own, limit, fits);
      if (end === undefined) return best;
      const tokens = countTokens(start, end);
      const measured = tokens / Math.max(1, estimate.between(start, end));
      if (tokens > sizeTokens || end - start > maxLength) {
        if (best !== undefined) return best;
        budget *= Math.min(0.95, (sizeTokens * AIM) / tokens);
        continue;
      }
      ratio = clamp(measured, 1 / MOST_RATIO, MOST_RATIO);
      best = { start, end, tokens };
      const isShort = estimate.between(start, limit) * ratio < sizeTokens * SHORT && limit < start + maxLength;
      if (!isShort || limit === text.length) return best;
      budget = (sizeTokens * AIM) / ratio;
    }
    return best;
  }

  function fits(start: number, end: number): boolean {
    return fitting(start, end) !== undefined;
  }

  function fitting(start: number, end: number): Cut | undefined {
    if (end - start > maxLength) return undefined;
    const tokens = countTokens(start, end);
    return tokens <= sizeTokens ? { start, end, tokens } : undefined;
  }

  function oneCharacter(start: number): Cut {
    const end = start + (isSplitAt(text, start + 1) ? 2 : 1);
    return { start, end, tokens: countTokens(start, end) };
  }
}

/** Rules of dots and runs of blanks cost next to nothing; without this bound one chunk of them would be megabytes long. */
const MAX_CHARACTERS_PER_TOKEN = 16;
/** How much of the size the estimate is let to fill, so that it rarely goes over. */
const AIM = 0.98;
/** A chunk that reached less far than this share of the size is tried again with what was learnt. */
const SHORT = 0.85;
const MOST_LOOKS = 4;
/** The estimate is further off only for texts of a few characters, which teach nothing. */
const MOST_RATIO = 64;

/** Where a chunk may end, and where what it repeats may begin: the best places within bounds that were found by counting. */
interface Places {
  /**
   * @param fits tells whether the code or table row that the limit cuts would fit a chunk
   * @returns after `own`, at most `limit` unless the row or code at `own` itself ends later; undefined where such a one has no
   *          room behind what is repeated
   */
  endIn(start: number, own: number, limit: number, fits: (start: number, end: number) => boolean): number | undefined;
  /** From `reach` to `end`; `end` where there is no good place. */
  overlapIn(start: number, reach: number, end: number): number;
}

const SECTION_FILL = 1 / 3;
/** Least share of a chunk's own part that is full before it ends at a line of this strength; no other line ends one. */
const LEAST_FILLS: ReadonlyMap<number, number> = new Map([
  [LINE, 2 / 3],
  [GROUP, 1 / 2],
  [BLOCK, 1 / 2],
  ...[1, 2, 3, 4, 5, 6].map((level) => [SECTION + 6 - level, SECTION_FILL] as const),
]);
const SENTENCE_FILL = 3 / 4;
const WORD_FILL = 7 / 8;

function placesOf(text: string, boundaries: Boundaries, estimate: Estimate): Places {
  return {
    endIn(start, own, limit, fits) {
      const cutWhole = boundaries.wholeAround(limit);
      if (cutWhole !== undefined && cutWhole.start >= own && fits(cutWhole.start, cutWhole.end)) {
        if (cutWhole.start > own) return endBeforeWhole(own, cutWhole.start);
        return start < own ? undefined : cutWhole.end;
      }
      const fill = fillOf(own, limit);
      return (
        bestLine(own, limit, fill) ??
        lastSentence(own, fill(SENTENCE_FILL), limit) ??
        lastWord(own, fill(WORD_FILL), limit) ??
        bestLine(own, limit, () => fill(SECTION_FILL)) ??
        lastAnywhere(text, own, own, limit) ??
        betweenCharacters(text, own, limit)
      );
    },

    overlapIn(start, reach, end) {
      const whole = wholeWithin(reach, start, end);
      const from = Math.max(whole?.end ?? reach, lastHeading(reach, end));
      if (from >= end || boundaries.headingLevel(from) > 0) return from;
      const to = Math.max(from, estimate.after(from, estimate.between(from, end) / 2));
      return (
        firstLine(start, from, to, end) ??
        firstSentence(start, from, end) ??
        firstWord(start, from, to, end) ??
        anywhereBetween(start, from, to, end)
      );
    },
  };

  /** What cannot be cut begins here, so that a chunk may be all but empty; only a heading before it can make that worse. */
  function endBeforeWhole(own: number, limit: number): number {
    const fill = fillOf(own, limit);
    return bestLine(own, limit, fill) ?? bestLine(own, limit, () => own) ?? limit;
  }

  /** The offset at which a share of what stands between `own` and `limit` is behind. */
  function fillOf(own: number, limit: number): (share: number) => number {
    const tokens = estimate.between(own, limit);
    return (share) => estimate.after(own, tokens * share);
  }

  /** The last of the strongest lines that start after `own`, at most at `limit`, and not before what the least fill asks for. */
  function bestLine(own: number, limit: number, offsetAt: (leastFill: number) => number): number | undefined {
    const least = Array.from(LEAST_FILLS, ([strength, fill]) => [strength, Math.max(own + 1, offsetAt(fill))] as const);
    const leastOf = new Map(least);
    const earliest = Math.min(...leastOf.values());
    let best: number | undefined;
    let bestStrength = TIED;
    for (let offset = limit; offset >= earliest; offset--) {
      const strength = boundaries.strength(offset);
      if (strength <= bestStrength || offset < (leastOf.get(strength) ?? Infinity)) continue;
      if (wholeWithin(offset, own, limit) !== undefined) continue;
      best = offset;
      bestStrength = strength;
    }
    return best;
  }

  function lastSentence(own: number, least: number, limit: number): number | undefined {
    const starts = sentenceStarts(text, Math.max(own, least), limit);
    return starts.findLast((offset) => isPlace(offset, own, limit));
  }

  function lastWord(own: number, least: number, limit: number): number | undefined {
    for (let offset = limit; offset > own && offset >= least; offset--) {
      if (isWordStart(text, offset) && isPlace(offset, own, limit)) return offset;
    }
    return undefined;
  }

  function firstLine(start: number, from: number, to: number, end: number): number | undefined {
    let best: number | undefined;
    let bestStrength = TIED;
    for (let offset = from; offset <= to && offset < end; offset++) {
      const strength = boundaries.strength(offset);
      if (strength < LINE || strength <= bestStrength || wholeWithin(offset, start, end) !== undefined) continue;
      best = offset;
      bestStrength = strength;
    }
    return best;
  }

  function firstSentence(start: number, from: number, end: number): number | undefined {
    return sentenceStarts(text, from, end - 1).find((offset) => isPlace(offset, start, end));
  }

  function firstWord(start: number, from: number, to: number, end: number): number | undefined {
    for (let offset = from; offset <= to && offset < end; offset++) {
      if (isWordStart(text, offset) && isPlace(offset, start, end)) return offset;
    }
    return undefined;
  }

  function anywhereBetween(start: number, from: number, to: number, end: number): number {
    if (to <= from) return end;
    const offset = lastAnywhere(text, start, from, Math.min(to, from + SEGMENTED_AFTER)) ?? end;
    return wholeWithin(offset, start, end) === undefined ? offset : end;
  }

  function isPlace(offset: number, from: number, to: number): boolean {
    return boundaries.strength(offset) !== TIED && wholeWithin(offset, from, to) === undefined;
  }

  /** The code or row that an offset cuts, if it lies within the bounds: one that goes beyond them is cut anyway. */
  function wholeWithin(offset: number, from: number, to: number): { readonly end: number } | undefined {
    const whole = boundaries.wholeAround(offset);
    return whole !== undefined && whole.start >= from && whole.end <= to ? whole : undefined;
  }

  function lastHeading(from: number, end: number): number {
    for (let offset = end - 1; offset >= from; offset--) if (boundaries.headingLevel(offset) > 0) return offset;
    return from;
  }
}

/** Where sentences start after `from`, up to `to`. */
function sentenceStarts(text: string, from: number, to: number): number[] {
  // One character more shows whether the last sentence starts in lower case, and so does not start.
  return sentences(text.slice(from, to + 2))
    .map((sentence) => from + sentence.start)
    .filter((offset) => offset > from && offset <= to && !isSplitAt(text, offset));
}

function isWordStart(text: string, offset: number): boolean {
  return isBlank(text.charCodeAt(offset - 1)) && !isBlank(text.charCodeAt(offset));
}

const SEGMENTED_BEFORE = 512;
const SEGMENTED_AFTER = 64;
const wordSegmenter = new Intl.Segmenter('und', { granularity: 'word' });
const graphemeSegmenter = new Intl.Segmenter('und', { granularity: 'grapheme' });

/**
 * The last offset after `after`, at most `limit`, between two words of a script without blanks, else between two graphemes. Segments
 * only what is near, since there may be megabytes of one grapheme, from `start` if that is near: graphemes are whole there.
 */
function lastAnywhere(text: string, start: number, after: number, limit: number): number | undefined {
  const from = Math.max(start, limit - SEGMENTED_BEFORE);
  const near = text.slice(from, limit + SEGMENTED_AFTER);
  for (const segmenter of [wordSegmenter, graphemeSegmenter]) {
    let last = after;
    for (const segment of segmenter.segment(near)) {
      const offset = from + segment.index;
      if (offset > limit) break;
      if (offset > Math.max(from, after) && !isSplitAt(text, offset)) last = offset;
    }
    if (last > after) return last;
  }
  return undefined;
}

/** The last offset after `own`, at most `limit`, between two characters; after the first one if there is none. */
function betweenCharacters(text: string, own: number, limit: number): number {
  if (!isSplitAt(text, limit)) return limit;
  return limit - 1 > own ? limit - 1 : limit + 1;
}

/** True inside a surrogate pair and between a carriage return and its line feed. */
function isSplitAt(text: string, offset: number): boolean {
  const before = text.charCodeAt(offset - 1);
  const after = text.charCodeAt(offset);
  return ((before & 0xfc00) === 0xd800 && (after & 0xfc00) === 0xdc00) || (before === 13 && after === 10);
}

function firstVisible(text: string, from: number, to: number): number | undefined {
  for (let offset = from; offset < to; offset++) if (!isBlank(text.charCodeAt(offset))) return offset;
  return undefined;
}

function isBlank(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13) || code === 0xa0 || code === 0x3000;
}

interface HeadingTrail {
  /** The headings above an offset, or at it, outermost first. Offsets must not fall. */
  above(offset: number): readonly string[];
}

function headingTrail(text: string, { nextHeading, headingLevel }: Boundaries): HeadingTrail {
  const open: (string | undefined)[] = [];
  let next = nextHeading(0);
  return {
    above(offset) {
      for (; next <= offset; next = nextHeading(next + 1)) {
        const level = headingLevel(next);
        open.length = level;
        open[level - 1] = headingText(text, next);
      }
      return open.filter((heading) => heading !== undefined && heading !== '') as string[];
    },
  };
}

function pageRange(pages: readonly PageStart[], start: number, end: number): Pick<Chunk, 'pageFrom' | 'pageTo'> {
  const first = pages[0];
  if (first === undefined) return { pageFrom: null, pageTo: null };
  return { pageFrom: (lastPage(start) ?? first).page, pageTo: (lastPage(end - 1) ?? first).page };

  function lastPage(offset: number): PageStart | undefined {
    let low = 0;
    let high = pages.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((pages[middle]?.start ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return pages[low - 1];
  }
}

/** Estimated tokens of any part of a text, for looking ahead: counting costs a hundred times as much. */
interface Estimate {
  between(start: number, end: number): number;
  /** The furthest offset with at most so many tokens between `start` and it. */
  after(start: number, tokens: number): number;
  /** The earliest offset with at most so many tokens between it and `end`. */
  before(end: number, tokens: number): number;
}

function estimateOf(text: string): Estimate {
  const sums = sumsOf(text);
  const last = sums.length - 1;
  const sumAt = (step: number) => sums[Math.min(step, last)] ?? 0;
  const costBefore = (offset: number) => {
    const step = Math.floor(offset / STEP);
    return sumAt(step) + ((sumAt(step + 1) - sumAt(step)) * (offset - step * STEP)) / STEP;
  };
  /** The last offset whose cost is at most `cost`. */
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

const STEP = 32;
/** What a character costs at least, so that nothing is taken to be free: the estimate thinks so of single blanks. */
const LEAST_TOKENS_PER_CHARACTER = 1 / 1_024;

/** Estimated tokens before every 32nd character; the last sum is drawn out to a full step. */
function sumsOf(text: string): Float64Array {
  const sums = new Float64Array(Math.ceil(text.length / STEP) + 1);
  let total = 0;
  let step = 1;
  forEachRun(text, (_start, end, centitokens) => {
    total += centitokens / 100;
    for (; step * STEP <= end; step++) sums[step] = total + end * LEAST_TOKENS_PER_CHARACTER;
  });
  const rest = text.length - (step - 1) * STEP;
  const before = sums[step - 1] ?? 0;
  if (rest > 0) sums[step] = before + ((total + text.length * LEAST_TOKENS_PER_CHARACTER - before) * STEP) / rest;
  return sums;
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
