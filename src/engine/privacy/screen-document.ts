import type { ParseResult } from '../ports.ts';
import { takeTurn } from '../turns.ts';
import type { Omission, PrivacyMode, PrivacyPolicy, SensitiveKind, SensitiveSpan } from '../types.ts';
import { groupOf } from './policy.ts';
import { markerOf, type Screening } from './screening.ts';

/**
 * Screens the text of a document as a whole, so that a value that is split between two chunks is found. The redacted
 * text is cut again at the chunk boundaries; where a value that is redacted lies across the boundary of two chunks,
 * each of them gets its whole marker. Title, authors, headings and outline are screened one by one.
 * @returns the document to store. In `sensitive` each chunk names the kinds that the policy marks in its text, in the
 *   headings above it and in the title, and the document those in its title, authors and outline
 * @throws EngineError `unprocessable` if the policy refuses a kind that was found; else as `Screening.find`
 */
export async function screenDocument(
  screening: Screening,
  policy: PrivacyPolicy,
  parsed: ParseResult,
): Promise<ParseResult> {
  const text = textOf(parsed);
  const spans = await screening.find('document', text);
  const screened = await screening.apply('document', text, spans);
  const inMode = (mode: PrivacyMode, found: readonly SensitiveSpan[]) =>
    found.filter(({ kind }) => policy[groupOf(kind)] === mode);
  const redacted = inMode('redact', spans);
  const move = moverOf(redacted);
  const marked = inMode('mark', spans);
  const screenField = async (field: string, given: string, kinds: Set<SensitiveKind>): Promise<string> => {
    const found = await screening.find(field, given);
    for (const { kind } of inMode('mark', found)) kinds.add(kind);
    return screening.apply(field, given, found);
  };
  const ofTitle = new Set<SensitiveKind>();
  const title = parsed.title && (await screenField('title', parsed.title, ofTitle));
  const chunks = [];
  for (const chunk of parsed.chunks) {
    await takeTurn();
    const within = spansWithin(marked, chunk.startOffset, chunk.endOffset);
    const kinds = new Set([...ofTitle, ...within.map(({ kind }) => kind)]);
    const headingPath = [];
    for (const heading of chunk.headingPath) headingPath.push(await screenField('heading', heading, kinds));
    const startOffset = move(chunk.startOffset, 'start');
    const endOffset = move(chunk.endOffset, 'end');
    chunks.push({
      ...chunk,
      startOffset,
      endOffset,
      headingPath,
      content: screened.slice(startOffset, endOffset),
      sensitive: [...kinds].sort(),
    });
  }
  const ofDocument = new Set(ofTitle);
  const outline = [];
  for (const entry of parsed.outline) {
    outline.push({ ...entry, text: await screenField('heading', entry.text, ofDocument) });
  }
  const authors = new Set<string>();
  for (const author of parsed.authors) authors.add(await screenField('author', author, ofDocument));
  const omissions = [...(parsed.omissions ?? []), ...redactionsOf(redacted)];
  const fields = { title, authors: [...authors], outline, chunks, characters: screened.length, omissions };
  return { ...parsed, ...fields, sensitive: [...ofDocument].sort() };
}

/**
 * Returns a note for the document's list of omissions, with the number of redacted values and of their characters; an
 * empty list if no value was redacted.
 */
function redactionsOf(spans: readonly SensitiveSpan[]): Omission[] {
  const characters = spans.reduce((sum, { start, end }) => sum + end - start, 0);
  return spans.length === 0 ? [] : [{ reason: 'redacted', count: spans.length, characters }];
}

/** Joins a document's chunks, which cover its whole text and may overlap, into the text. */
function textOf({ chunks }: ParseResult): string {
  let text = '';
  for (const { startOffset, content } of chunks) text += content.slice(Math.max(0, text.length - startOffset));
  return text;
}

/**
 * Returns a function that converts an offset of the original text into an offset of the redacted text. An offset within
 * a redacted value becomes the start or the end of the value's marker, as the argument `side` says.
 */
function moverOf(redacted: readonly SensitiveSpan[]): (offset: number, side: 'start' | 'end') => number {
  // By how much the markers of the spans before each span, and of all of them, lengthen the text.
  const shifts = [0];
  for (const { kind, start, end } of redacted) shifts.push(shifts.at(-1)! + markerOf(kind).length - (end - start));
  return (offset, side) => {
    const before = countEndedBy(redacted, offset);
    const shift = shifts[before]!;
    const span = redacted[before];
    if (span === undefined || span.start >= offset) return offset + shift;
    return span.start + shift + (side === 'start' ? 0 : markerOf(span.kind).length);
  };
}

/** Returns the spans that have a character from `start` up to but not including `end`. */
function spansWithin(spans: readonly SensitiveSpan[], start: number, end: number): SensitiveSpan[] {
  const within = [];
  for (let at = countEndedBy(spans, start); at < spans.length && spans[at]!.start < end; at += 1)
    within.push(spans[at]!);
  return within;
}

/** Counts the spans that end at an offset or before it, by bisection: they rise and do not overlap. */
function countEndedBy(spans: readonly SensitiveSpan[], offset: number): number {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (spans[middle]!.end <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}
