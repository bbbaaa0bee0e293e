import { bold, oneLine, wrap } from './terminal.ts';

const MAX_LINES = 3;
/**
 * Shortest beginning of a term that is compared, in UTF-16 code units; a shorter term is compared whole. A long term is
 * compared without its last three code units, because endings differ between the query and the text (`duplicates`,
 * `duplicate`).
 */
const MIN_START = 4;
const MAX_STARTS = 64;
/** Greatest length of a text in which the best excerpt is searched, in UTF-16 code units; the rest is ignored. */
const MAX_SEARCHED = 20_000;
const WORD = /^[\p{L}\p{N}]{2,}$/u;

/** Returns the words of a query that are searched in a text: runs of three or more letters or digits. */
export function wordsOf(query: string): string[] {
  return query.match(/[\p{L}\p{N}]{3,}/gu) ?? [];
}

/**
 * Returns at most three lines of a text, each at most `width` columns, from the passage with the greatest number of
 * different terms. Words that begin like a term are bold. Without terms it is the beginning of the text.
 */
export function showExcerpt(text: string, terms: readonly string[], width: number): string[] {
  const starts = [
    ...new Set(
      terms
        .filter((term) => WORD.test(term))
        .slice(0, MAX_STARTS)
        .map(startOf),
    ),
  ];
  const plain = oneLine(text.slice(0, MAX_SEARCHED));
  // Near the end of the text, the excerpt begins earlier, so that its lines are full.
  const from = wordStart(
    plain,
    Math.min(bestStart(plain, starts, width * (MAX_LINES - 1)), plain.length - width * MAX_LINES + width / 4),
  );
  const lines = wrap(`${from === 0 ? '' : '… '}${plain.slice(from)}`, width, MAX_LINES);
  if (starts.length === 0) return lines;
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${starts.join('|')})[\\p{L}\\p{N}]{0,12}`, 'giu');
  return lines.map((line) => line.replace(pattern, (word) => bold(word)));
}

function startOf(term: string): string {
  return term.toLowerCase().slice(0, Math.max(MIN_START, term.length - 3));
}

/**
 * Returns where the passage of `length` code units begins that contains the greatest number of different terms, moved
 * back to the start of its sentence or a word near it; 0 if none contains more than the beginning of the text.
 */
function bestStart(text: string, starts: readonly string[], length: number): number {
  const lower = text.toLowerCase();
  const matches = starts
    .flatMap((start, term) => occurrences(lower, start).map((at) => ({ at, term })))
    .sort((a, b) => a.at - b.at);
  let best = { at: 0, terms: new Set(matches.filter(({ at }) => at < length).map(({ term }) => term)).size };
  const inside = new Map<number, number>();
  let first = 0;
  for (const { at, term } of matches) {
    inside.set(term, (inside.get(term) ?? 0) + 1);
    for (; matches[first]!.at < at - length; first++) {
      const left = inside.get(matches[first]!.term)! - 1;
      if (left === 0) inside.delete(matches[first]!.term);
      else inside.set(matches[first]!.term, left);
    }
    if (inside.size > best.terms) best = { at: matches[first]!.at, terms: inside.size };
  }
  return best.at === 0 ? 0 : sentenceStart(text, best.at);
}

function occurrences(text: string, start: string): number[] {
  const positions: number[] = [];
  for (let at = text.indexOf(start); at !== -1; at = text.indexOf(start, at + start.length)) {
    if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]!)) positions.push(at);
  }
  return positions;
}

function wordStart(text: string, at: number): number {
  return at <= 0 ? 0 : text.lastIndexOf(' ', at) + 1;
}

/**
 * Moves a position back to the start of its sentence if that is at most 60 code units away, else to the first word that
 * begins in the 30 code units before it; if none does, it returns the position itself.
 */
function sentenceStart(text: string, at: number): number {
  const before = text.slice(Math.max(0, at - 60), at);
  const sentence = Math.max(before.lastIndexOf('. '), before.lastIndexOf(': '));
  if (sentence !== -1) return at - before.length + sentence + 2;
  const blank = before.indexOf(' ', Math.max(0, before.length - 30));
  return blank === -1 ? at : at - before.length + blank + 1;
}
