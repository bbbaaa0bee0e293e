import type { ParseResult } from '../ports.ts';
import type { Omission, PrivacyPolicy, SensitiveSpan } from '../types.ts';
import { groupOf } from './policy.ts';
import { markerOf, type Screening } from './screening.ts';

/**
 * Screens the text of a document as a whole, so that a value that is split between two chunks is found. The redacted
 * text is cut again at the chunk boundaries; a boundary within a redacted value moves to the end or the start of the
 * value's marker. Title, authors, headings and outline are screened one by one.
 * @returns the document to store; its chunks name the kinds that the policy marks
 * @throws EngineError `unprocessable` if the policy refuses a kind that was found
 */
export async function screenDocument(
  screening: Screening,
  policy: PrivacyPolicy,
  parsed: ParseResult,
): Promise<ParseResult> {
  const text = textOf(parsed);
  const spans = await screening.find('document', text);
  const screened = screening.apply('document', text, spans);
  const inMode = (mode: string) => spans.filter(({ kind }) => policy[groupOf(kind)] === mode);
  const move = moverOf(inMode('redact'));
  const marked = inMode('mark');
  const chunks = [];
  for (const chunk of parsed.chunks) {
    const kinds = marked.filter(({ start, end }) => start < chunk.endOffset && end > chunk.startOffset);
    const startOffset = move(chunk.startOffset, 'start');
    const endOffset = move(chunk.endOffset, 'end');
    chunks.push({
      ...chunk,
      startOffset,
      endOffset,
      headingPath: await screenAll(screening, 'heading', chunk.headingPath),
      content: screened.slice(startOffset, endOffset),
      sensitive: [...new Set(kinds.map(({ kind }) => kind))].sort(),
    });
  }
  const outline = [];
  for (const entry of parsed.outline) outline.push({ ...entry, text: await screening.screen('heading', entry.text) });
  const title = parsed.title && (await screening.screen('title', parsed.title));
  const authors = [...new Set(await screenAll(screening, 'author', parsed.authors))];
  const omissions = [...(parsed.omissions ?? []), ...redactionsOf(inMode('redact'))];
  return { ...parsed, title, authors, outline, chunks, characters: screened.length, omissions };
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
  return (offset, side) => {
    let shift = 0;
    for (const { kind, start, end } of redacted) {
      if (start >= offset) break;
      const marker = markerOf(kind).length;
      if (offset < end) return start + shift + (side === 'start' ? 0 : marker);
      shift += marker - (end - start);
    }
    return offset + shift;
  };
}

async function screenAll(screening: Screening, field: string, texts: readonly string[]): Promise<string[]> {
  const screened = [];
  for (const text of texts) screened.push(await screening.screen(field, text));
  return screened;
}
