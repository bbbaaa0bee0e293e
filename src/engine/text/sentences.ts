/** A sentence of a text without the blanks around it. Its offsets are in UTF-16 code units; `end` is exclusive. */
export interface Sentence {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Splits a text into its sentences, in order. A sentence ends at `.`, `!`, `?`, `…`, `؟` or `।` before a blank that no
 * lower-case letter follows, at a full-width mark of CJK (`。！？｡．`), at a blank line, and at a line feed that no
 * lower-case letter follows. Closing quotes and brackets after a mark belong to the sentence before. The full stop of
 * an English or German abbreviation, of an initial or of a list number ends no sentence, nor does a single line feed
 * after it. Every character but blanks belongs to exactly one sentence. The text is scanned in one pass without regular
 * expressions, since these would take quadratic time on runs of dots or blanks.
 */
export function sentences(text: string): Sentence[] {
  const list: Sentence[] = [];
  let start = 0;
  let index = 0;
  while (index < text.length) {
    const code = text.charCodeAt(index);
    if (isTerminator(code)) {
      const stop = skip(text, skip(text, index, isTerminator), isCloser);
      const next = skip(text, stop, isBlank);
      const cjk = isCjkTerminator(code);
      if (cjk || (next > stop && endsSentence(text, start, index, next)) || next === text.length) {
        push(list, text, start, stop);
        start = next;
        index = next;
      } else {
        // A blank line after the mark ends the sentence, which a single line break there does not.
        const newline = stop + text.slice(stop, next).indexOf('\n');
        index = newline >= stop && isBlankLine(text, newline, next) ? newline : next;
      }
    } else if (code === NEWLINE) {
      const next = skip(text, index, isBlank);
      if (isBlankLine(text, index, next) || !isLowerCase(text, next)) {
        push(list, text, start, index);
        start = next;
      }
      index = next;
    } else {
      index++;
    }
  }
  push(list, text, start, text.length);
  return list;
}

function push(list: Sentence[], text: string, start: number, end: number): void {
  let from = start;
  let to = end;
  while (from < to && isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  if (from < to) list.push({ text: text.slice(from, to), start: from, end: to });
}

function endsSentence(text: string, start: number, terminator: number, next: number): boolean {
  if (isLowerCase(text, next)) return false;
  if (text.charCodeAt(terminator) !== FULL_STOP) return true;
  const word = LAST_WORD.exec(text.slice(Math.max(start, terminator - MAX_ABBREVIATION - 1), terminator))?.[0] ?? '';
  if (/^\p{Lu}$/u.test(word) || ABBREVIATIONS.has(word.toLowerCase())) return false;
  // A number alone, such as "1." at the start of a line, numbers the text after it.
  return !(/^\d+$/.test(word) && text.slice(start, terminator).trim() === word);
}

/**
 * Tells whether another line break is between the line break at `newline` and the offset `next`, so that there is a
 * blank line.
 */
function isBlankLine(text: string, newline: number, next: number): boolean {
  const second = text.indexOf('\n', newline + 1);
  return second !== -1 && second < next;
}

function skip(text: string, from: number, matches: (code: number) => boolean): number {
  let index = from;
  while (index < text.length && matches(text.charCodeAt(index))) index++;
  return index;
}

function isLowerCase(text: string, index: number): boolean {
  return /^\p{Ll}/u.test(text.slice(index, index + 2));
}

const NEWLINE = 10;
const FULL_STOP = 46;
const TERMINATORS = new Set(Array.from('.!?…。！？｡．؟।', (character) => character.charCodeAt(0)));
const CJK_TERMINATORS = new Set(Array.from('。！？｡．', (character) => character.charCodeAt(0)));
const CLOSERS = new Set(Array.from('"\')]}”’»」』）】', (character) => character.charCodeAt(0)));

function isTerminator(code: number): boolean {
  return TERMINATORS.has(code);
}

function isCjkTerminator(code: number): boolean {
  return CJK_TERMINATORS.has(code);
}

function isCloser(code: number): boolean {
  return CLOSERS.has(code);
}

function isBlank(code: number): boolean {
  return (
    code === 32 || (code >= 9 && code <= 13) || code === 0xa0 || code === 0x3000 || code === 0x2028 || code === 0x2029
  );
}

/** Greatest length of an abbreviation that is recognised before a full stop, in UTF-16 code units. */
const MAX_ABBREVIATION = 8;
const LAST_WORD = /[\p{L}\p{N}.]*$/u;
const ABBREVIATIONS: ReadonlySet<string> = new Set(
  `mr mrs ms dr prof st sr jr rev gen col capt lt sgt gov sen rep hon vs e.g i.e eg ie cf al fig figs eq eqs sec no
   nos vol vols pp ed eds approx dept est inc ltd co corp bros jan feb mar apr jun jul aug sep sept oct nov dec mon
   tue wed thu fri ca bzw usw z.b d.h nr str bd u.s u.k ph.d a.m p.m`.split(/\s+/),
);
