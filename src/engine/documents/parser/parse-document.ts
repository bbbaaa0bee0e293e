import type { ParseRequest, Chunk, ParsedDocument } from '../../ports.ts';
import type { DocumentFormat, Omission } from '../../types.ts';
import { chunkText } from '../chunk-text.ts';
import { loadTokenCounter } from '../count-tokens.ts';
import { canonicalLanguage, detectLanguage, loadLanguages } from '../detect-language.ts';
import { DocumentError } from '../document-error.ts';
import { outlineOf } from '../outline.ts';
import { type FormatParser, PARSE_LIMITS, textKindOf } from '../parsed-document.ts';
import { sniffFormat, sniffZip, SNIFFED_BYTES } from '../sniff.ts';
import { openZip } from '../zip.ts';
import type { ReadDocument } from './parser-frames.ts';
import { beginningOf } from '../../text/beginning-of.ts';

/** For each format, a function that loads its parser, with the library of that format only. */
const PARSERS: Record<DocumentFormat, () => Promise<FormatParser>> = {
  pdf: async () => (await import('../formats/pdf.ts')).readPdf,
  docx: async () => (await import('../formats/docx.ts')).readDocx,
  pptx: async () => (await import('../formats/pptx.ts')).readPptx,
  xlsx: async () => (await import('../formats/xlsx.ts')).readXlsx,
  epub: async () => (await import('../formats/epub.ts')).readEpub,
  html: async () => (await import('../formats/html.ts')).readHtml,
  markdown: async () => (await import('../formats/text.ts')).readMarkdown,
  text: async () => (await import('../formats/text.ts')).readText,
  csv: async () => (await import('../formats/csv.ts')).readCsv,
  json: async () => (await import('../formats/json.ts')).readJson,
  ndjson: async () => (await import('../formats/json.ts')).readNdjson,
  email: async () => (await import('../formats/email.ts')).readEmail,
  code: async () => (await import('../formats/code.ts')).readCode,
};

/** Greatest number of authors of a document; further ones are dropped. */
const MAX_AUTHORS = 100;
/** Greatest number of warnings about a document; further ones are dropped. */
const MAX_WARNINGS = 100;

/**
 * Loads the code that documents of nearly all formats need, in advance, while no document waits. The library of a
 * format is loaded for the first document of that format.
 */
export async function loadCommonParts(): Promise<void> {
  await Promise.all([loadTokenCounter(), loadLanguages()]);
}

/**
 * Reads a file and cuts its text into chunks; a file without text has no chunks. It runs only in the parser's child
 * process.
 * @throws DocumentError for a fault of the file; `document_too_large` for more than 20,000,000 characters of text or
 *    5,000 chunks; `parser_crashed` if the format's parser cannot be loaded; errors of libraries are passed on
 */
export async function parseDocument(
  request: ParseRequest,
  onPage: (done: number, pages: number) => void,
): Promise<ReadDocument> {
  const { bytes, charset, extension } = request;
  const format = await decideFormat(request);
  const parse = await loadParser(format);
  const parsed = await parse(bytes, { charset, extension, onPage });
  if (parsed.text.length > PARSE_LIMITS.textCharacters) {
    throw new DocumentError(
      'document_too_large',
      `The document holds more than ${PARSE_LIMITS.textCharacters} characters of text: split it`,
    );
  }
  const text = cleanText(parsed.text);
  return { ...(await describe(parsed, text, format)), ...(await cut(parsed, text, format, request)), text, format };
}

async function decideFormat({ bytes, declared, extension }: ParseRequest): Promise<DocumentFormat> {
  const start = bytes.subarray(0, SNIFFED_BYTES);
  const format = declared ?? sniffFormat({ start, mediaType: null, extension });
  if (format !== null && !startsAsZip(bytes)) return format;
  const archive = await openZip(bytes);
  const content = await sniffZip(archive.names, (name) => archive.read(name));
  if (format === null || format === content) return content;
  throw new DocumentError('unsupported_document', `The file is said to be ${format}, but its content is ${content}`);
}

function startsAsZip(bytes: Uint8Array): boolean {
  return [0x50, 0x4b, 0x03, 0x04].every((byte, index) => bytes[index] === byte);
}

/**
 * Loads the parser of a format.
 * @throws DocumentError `parser_crashed`, since a failure to load is not a fault of the document
 */
async function loadParser(format: DocumentFormat): Promise<FormatParser> {
  try {
    return await PARSERS[format]();
  } catch (cause) {
    throw new DocumentError('parser_crashed', `The parser of ${format} could not be loaded`, { cause });
  }
}

/**
 * Replaces each control character of ASCII, except tab and line feed, with a blank or a line feed, and lone surrogates
 * with U+FFFD. The length of the text does not change, so every offset stays valid.
 */
function cleanText(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\r\v\f]/g, '\n')
    .replace(/[\0-\x08\x0e-\x1f\x7f]/g, ' ');
}

/**
 * Counts the control characters that `cleanText` replaces with blanks, as an omission; an empty list if there are none.
 */
function controlsIn(text: string): Omission[] {
  const { length } = text.match(/[\0-\x08\x0e-\x1f\x7f]/g) ?? [];
  return length === 0 ? [] : [{ reason: 'control_characters', count: length, characters: length }];
}

/**
 * Returns an omission for a text of blanks and control characters only, of which no chunk is made; an empty list for a
 * text with a visible character, and for ''.
 */
function unreadIn(text: string): Omission[] {
  return text === '' || hasText(text) ? [] : [{ reason: 'no_text', count: 1, characters: text.length }];
}

type Description = Omit<ReadDocument, keyof Cut | 'format' | 'text'>;

async function describe(parsed: ParsedDocument, text: string, format: DocumentFormat): Promise<Description> {
  const { authors, publishedAt, modifiedAt, warnings, pages } = parsed;
  const named = parsed.language === null ? null : canonicalLanguage(parsed.language);
  return {
    title: line(parsed.title),
    authors: authors
      .slice(0, MAX_AUTHORS)
      .map(line)
      .filter((author) => author !== ''),
    language: named ?? (textKindOf(format) === 'code' ? null : await detectLanguage(text)),
    publishedAt: instant(publishedAt),
    modifiedAt: instant(modifiedAt),
    warnings: warnings.slice(0, MAX_WARNINGS),
    omissions: [...(parsed.omissions ?? []), ...controlsIn(parsed.text), ...unreadIn(text)],
    pages: pages.length === 0 ? null : pages.length,
    characters: text.length,
  };
}

type Cut = Pick<ReadDocument, 'tokens' | 'outline' | 'chunks'>;

async function cut(
  { pages }: ParsedDocument,
  text: string,
  format: DocumentFormat,
  { sizeTokens, overlapTokens }: ParseRequest,
): Promise<Cut> {
  if (!hasText(text)) return { tokens: 0, outline: [], chunks: [] };
  const kind = textKindOf(format);
  const countTokens = await loadTokenCounter();
  const chunks = chunkText(text, { sizeTokens, overlapTokens, kind, pages, countTokens });
  if (chunks.length > PARSE_LIMITS.chunks) {
    throw new DocumentError(
      'document_too_large',
      `The document makes more than ${PARSE_LIMITS.chunks} chunks: split it, or choose larger chunks`,
    );
  }
  return { tokens: tokensOf(chunks), outline: outlineOf(text, kind), chunks };
}

/** Tells whether a text has any visible character: a letter, digit, punctuation mark or symbol. */
function hasText(text: string): boolean {
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(text);
}

/**
 * Estimates the number of tokens of a text from the exact counts of its chunks. A chunk counts with the share of its
 * characters that it does not repeat of the chunk before. Counting the whole text would take as long as cutting it.
 */
function tokensOf(chunks: readonly Chunk[]): number {
  let end = 0;
  let tokens = 0;
  for (const chunk of chunks) {
    const share = (chunk.endOffset - Math.max(end, chunk.startOffset)) / (chunk.endOffset - chunk.startOffset);
    tokens += chunk.tokens * share;
    end = chunk.endOffset;
  }
  return Math.round(tokens);
}

/** Converts a text to one trimmed line, cut to 1,024 UTF-16 code units. */
function line(text: string): string {
  // This is more than enough before blanks are folded.
  const folded = cleanText(beginningOf(text, 8 * PARSE_LIMITS.titleCharacters))
    .replace(/\s+/g, ' ')
    .trim();
  return beginningOf(folded, PARSE_LIMITS.titleCharacters).trimEnd();
}

function instant(time: number | null): number | null {
  return time !== null && Number.isSafeInteger(time) ? time : null;
}
