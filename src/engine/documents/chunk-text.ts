import { assert } from '../errors.ts';
import type { Chunk, PageStart } from '../ports.ts';
import { boundariesOf, type Boundaries } from './boundaries.ts';
import { createCutter } from './chunk-cutter.ts';
import type { TokenCounter } from './count-tokens.ts';
import { firstVisible } from './cut-points.ts';
import { headingText } from './outline.ts';
import type { TextKind } from './parsed-document.ts';

/** How a text is cut into chunks. */
export interface ChunkOptions {
  /**
   * Greatest number of tokens in a chunk (`OM_CHUNK_TOKENS`), including the text that it repeats of the chunk before;
   * at least 64.
   */
  readonly sizeTokens: number;
  /**
   * Greatest number of tokens at the start of a chunk that repeat the end of the chunk before
   * (`OM_CHUNK_OVERLAP_TOKENS`); 0 for none, at most half of `sizeTokens`.
   */
  readonly overlapTokens: number;
  /** Kind of the text, which determines the rules by which its lines and headings are recognised. */
  readonly kind: TextKind;
  /** Starts of the text's pages, in order. For a text without pages it is empty, and chunks have no page numbers. */
  readonly pages: readonly PageStart[];
  readonly countTokens: TokenCounter;
}

/**
 * Cuts a text into chunks of at most `sizeTokens`. Each chunk repeats up to `overlapTokens` of the chunk before it. The
 * chunks cover the text: the first starts at 0; each next one starts after the start of the one before, and at or
 * before its end; the last ends with the text.
 *
 * A chunk may end before a section once it is a third full; before a block (paragraph, list, table, code), an outer
 * item or a definition once it is half full; before another item, row or line of code once it is two thirds full; then
 * between sentences, words and anywhere. For sections it is a third, because a limit of half would cut every section
 * that is a bit longer than half a chunk. Of several sections the outermost begins the next chunk, since a chunk that
 * spans two chapters represents neither. Fenced code and table rows that fit a chunk are never cut. A heading stays
 * with what follows it, unless that is code or a row that would not fit together with the heading.
 *
 * A chunk that starts with a heading repeats nothing: the heading and its path say where the chunk belongs, and the end
 * of another section would only dilute it. Repeated text begins at a block, line, sentence or word, never before the
 * heading above it.
 * @returns the chunks in order, with exact tokens and offsets in UTF-16 units; none for an empty text
 * @throws EngineError `internal` for a size or an overlap out of range
 */
export function chunkText(text: string, options: ChunkOptions): Chunk[] {
  const { sizeTokens, overlapTokens, kind, pages } = options;
  assert(sizeTokens >= 64 && overlapTokens >= 0 && overlapTokens <= sizeTokens / 2, 'chunk size and overlap');
  const boundaries = boundariesOf(text, kind);
  const cutter = createCutter(text, boundaries, options);
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

interface HeadingTrail {
  /**
   * Returns the texts of the headings whose sections contain an offset, outermost first, including a heading that
   * starts at the offset. Headings without words are left out. The offset must not be lower than in the call before.
   */
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
