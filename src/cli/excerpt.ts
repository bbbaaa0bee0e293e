import { bold, oneLine, wrap } from './terminal.ts';

const LINES = 3;
/** Endings differ between a word of the query and the text (`duplicates`, `duplicate`), so that only a start is compared. */
const SHORTEST_START = 4;
const MOST_STARTS = 64;
/** Only so much of a text is searched for its best part. */
const SEARCHED = 20_000;
const WORD = /^[\p{L}\p{N}]{2,}$/u;

/** The words of a query that are worth looking for in a text. */
export function wordsOf(query: string): string[] {
  return query.match(/[\p{L}\p{N}]{3,}/gu) ?? [];
}

/** At most three lines of a text, from the part that holds most of the terms, which stand out. */
export function showExcerpt(text: string, terms: readonly string[], width: number): string[] {
  const starts = [
    ...new Set(
      terms
        .filter((term) => WORD.test(term))
        .slice(0, MOST_STARTS)
        .map(startOf),
    ),
  ];
  const plain = oneLine(text.slice(0, SEARCHED));
  // Near the end of the text the lines are filled from before.
  const from = wordStart(
    plain,
    Math.min(bestStart(plain, starts, width * (LINES - 1)), plain.length - width * LINES + width / 4),
  );
  const lines = wrap(`${from === 0 ? '' : '… '}${plain.slice(from)}`, width, LINES);
  if (starts.length === 0) return lines;
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${starts.join('|')})[\\p{L}\\p{N}]{0,12}`, 'giu');
  return lines.map((line) => line.replace(pattern, (word) => bold(word)));
}

function startOf(term: string): string {
  return term.toLowerCase().slice(0, Math.max(SHORTEST_START, term.length - 3));
}

/** Where the stretch of this length begins that holds most different terms; 0 if that is as good as any. */
function bestStart(text: string, starts: readonly string[], length: number): number {
  const lower = text.toLowerCase();
  const found = starts
    .flatMap((start, term) => occurrences(lower, start).map((at) => ({ at, term })))
    .sort((a, b) => a.at - b.at);
  let best = { at: 0, terms: new Set(found.filter(({ at }) => at < length).map(({ term }) => term)).size };
  const inside = new Map<number, number>();
  let first = 0;
  for (const { at, term } of found) {
    inside.set(term, (inside.get(term) ?? 0) + 1);
    for (; found[first]!.at < at - length; first++) {
      const left = inside.get(found[first]!.term)! - 1;
      if (left === 0) inside.delete(found[first]!.term);
      else inside.set(found[first]!.term, left);
    }
    if (inside.size > best.terms) best = { at: found[first]!.at, terms: inside.size };
  }
  return best.at === 0 ? 0 : sentenceStart(text, best.at);
}

function occurrences(text: string, start: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(start); at !== -1; at = text.indexOf(start, at + start.length)) {
    if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]!)) found.push(at);
  }
  return found;
}

function wordStart(text: string, at: number): number {
  return at <= 0 ? 0 : text.lastIndexOf(' ', at) + 1;
}

/** Back to the start of the sentence if it is near, else a few words. */
function sentenceStart(text: string, at: number): number {
  const before = text.slice(Math.max(0, at - 60), at);
  const sentence = Math.max(before.lastIndexOf('. '), before.lastIndexOf(': '));
  if (sentence !== -1) return at - before.length + sentence + 2;
  const blank = before.indexOf(' ', Math.max(0, before.length - 30));
  return blank === -1 ? at : at - before.length + blank + 1;
}
