import type { ParseRequest, Chunk, ParsedDocument } from '../../ports.ts';
import type { DocumentFormat } from '../../types.ts';
import { chunkText, outlineOf } from '../chunk-text.ts';
import { loadTokenCounter } from '../count-tokens.ts';
import { canonicalLanguage, detectLanguage } from '../detect-language.ts';
import { DocumentError } from '../document-error.ts';
import { type FormatParser, PARSE_LIMITS, textKindOf } from '../parsed-document.ts';
import { sniffFormat, sniffZip, SNIFFED_BYTES } from '../sniff.ts';
import { openZip } from '../zip.ts';
import type { ReadDocument } from './parser-frames.ts';

/** Each loads its library, and only its own. */
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

const AUTHORS_MOST = 100;
const WARNINGS_MOST = 100;

/**
 * Reads a file and cuts it into chunks. Runs only in the parser's child process.
 * @throws DocumentError with the file's own fault, or `document_too_large` for too much text or too many chunks
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
  const found = await sniffZip(archive.names, (name) => archive.read(name));
  if (format === null || format === found) return found;
  throw new DocumentError('unsupported_document', `The file is said to be ${format}, but its content is ${found}`);
}

function startsAsZip(bytes: Uint8Array): boolean {
  return [0x50, 0x4b, 0x03, 0x04].every((byte, index) => bytes[index] === byte);
}

/** That it cannot be loaded is no fault of the document. */
async function loadParser(format: DocumentFormat): Promise<FormatParser> {
  try {
    return await PARSERS[format]();
  } catch (cause) {
    throw new DocumentError('parser_crashed', `The parser of ${format} could not be loaded`, { cause });
  }
}

/** Keeps every offset: what may not stay becomes a blank or a line break, not nothing. */
function cleanText(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\r\v\f]/g, '\n')
    .replace(/[\0-\x08\x0e-\x1f\x7f]/g, ' ');
}

type Description = Omit<ReadDocument, keyof Cut | 'format' | 'text'>;

async function describe(parsed: ParsedDocument, text: string, format: DocumentFormat): Promise<Description> {
  const { authors, publishedAt, modifiedAt, warnings, pages } = parsed;
  const named = parsed.language === null ? null : canonicalLanguage(parsed.language);
  return {
    title: line(parsed.title),
    authors: authors
      .slice(0, AUTHORS_MOST)
      .map(line)
      .filter((author) => author !== ''),
    language: named ?? (textKindOf(format) === 'code' ? null : await detectLanguage(text)),
    publishedAt: instant(publishedAt),
    modifiedAt: instant(modifiedAt),
    warnings: warnings.slice(0, WARNINGS_MOST),
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

/** Something to be seen: not only blanks and what has no width. */
function hasText(text: string): boolean {
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(text);
}

/** The text's tokens by its chunks, each without what it repeats: counting the whole once more would cost as much as the cut. */
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

/** On one line, and no longer than a title may be. */
function line(text: string): string {
  // More than enough before blanks are folded; a cut within a character leaves U+FFFD, which goes.
  const folded = cleanText(text.slice(0, 8 * PARSE_LIMITS.titleCharacters))
    .replace(/\s+/g, ' ')
    .trim();
  if (folded.length <= PARSE_LIMITS.titleCharacters) return folded;
  return folded
    .slice(0, PARSE_LIMITS.titleCharacters)
    .toWellFormed()
    .replace(/\uFFFD$/, '')
    .trimEnd();
}

function instant(time: number | null): number | null {
  return time !== null && Number.isSafeInteger(time) ? time : null;
}
