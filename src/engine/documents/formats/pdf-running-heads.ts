import type { Line } from './pdf-lines.ts';
import type { PdfPage } from './pdf-style.ts';

/** Least number of pages (all pages, left pages or right pages) among which repeated lines are searched for. */
const MIN_PAGES = 4;
/** Number of lines at the top of a page that may be running headers; the same number at the bottom may be footers. */
const OUTERMOST_LINES = 3;
/**
 * Greatest distance of a running header's vertical position from the median of its positions on all pages, in points.
 */
const SAME_HEIGHT = 3;

/**
 * Returns the lines of each page, in order, without running headers, running footers and page numbers. Such lines are
 * among the three first or last lines, at one height, on more than half of all pages, of the left pages or of the right
 * pages, of which there must be at least four. Their texts are equal except for a page number, or all begin or end with
 * one. Each wording with letters is kept on the first page that has it, since it may be nowhere else. No page is left
 * empty.
 */
export function withoutRunningHeads(pages: readonly PdfPage[]): (readonly Line[])[] {
  const repeated = new Set<Line>();
  for (const sightings of Map.groupBy(sightingsOf(pages), ({ key }) => key).values()) {
    for (const line of repeatedLines(sightings, pages.length)) repeated.add(line);
  }
  return pages.map(({ lines }) => {
    const kept = lines.filter((line) => !repeated.has(line));
    return kept.length === 0 ? lines : kept;
  });
}

/** One of a page's first or last lines, with a key that is equal for similar lines of other pages. */
interface Sighting {
  readonly key: string;
  /** Index of the page, from 0. */
  readonly page: number;
  readonly line: Line;
}

function* sightingsOf(pages: readonly PdfPage[]): Generator<Sighting> {
  for (const [page, { lines }] of pages.entries()) {
    for (const line of outermostLines(lines)) for (const key of repeatKeys(line, page)) yield { key, page, line };
  }
}

function outermostLines(lines: readonly Line[]): Line[] {
  const upright = lines.filter((line) => line.direction === lines[0]!.direction);
  const sorted = upright.toSorted((a, b) => b.baseline - a.baseline);
  return [...new Set([...sorted.slice(0, OUTERMOST_LINES), ...sorted.slice(-OUTERMOST_LINES)])];
}

/**
 * Returns keys of a line, such that all lines of one running header have at least one key in common: the line's text;
 * the text in which the first or last number is replaced by its distance from the page's number; and that distance
 * alone if the number is at an end of the line, as after the title of a chapter. A line of more than 200 characters has
 * no key.
 */
function repeatKeys(line: Line, page: number): string[] {
  if (line.text.length > 200) return [];
  const numbers = [...line.text.matchAll(/\d{1,6}/g)];
  const ends = [...new Set([numbers.at(0), numbers.at(-1)])].filter((match) => match !== undefined);
  return [
    line.text,
    ...ends.flatMap((match) => {
      const before = line.text.slice(0, match.index);
      const after = line.text.slice(match.index + match[0].length);
      const counting = `{${Number(match[0]) - page}}`;
      return [`${before}${counting}${after}`, ...(before === '' || after === '' ? [counting] : [])];
    }),
  ];
}

/**
 * Returns the lines to remove among lines that have a key in common. It returns none if they are on too few pages at
 * one height; else all lines at that height, except the first line of each wording that has letters.
 */
function repeatedLines(sightings: readonly Sighting[], pages: number): Line[] {
  const heights = sightings.map(({ line }) => line.baseline).sort((a, b) => a - b);
  const height = heights[heights.length >> 1]!;
  const level = sightings.filter(({ line }) => Math.abs(line.baseline - height) <= SAME_HEIGHT);
  if (!standsOnMost(new Set(level.map(({ page }) => page)), pages)) return [];
  const kept = new Set<string>();
  return level.flatMap(({ line }) => {
    const words = line.text.replace(/\d+/g, '');
    if (!/\p{L}{2}/u.test(words) || kept.has(words)) return [line];
    kept.add(words);
    return [];
  });
}

/**
 * Tells whether a set of page indexes (from 0) has more than half of all indexes, of the even ones or of the odd ones.
 */
function standsOnMost(indexes: ReadonlySet<number>, pages: number): boolean {
  const odd = [...indexes].filter((page) => page % 2 === 1).length;
  return (
    isMost(indexes.size, pages) ||
    isMost(indexes.size - odd, Math.ceil(pages / 2)) ||
    isMost(odd, Math.floor(pages / 2))
  );
}

function isMost(count: number, pages: number): boolean {
  return pages >= MIN_PAGES && count * 2 > pages;
}
