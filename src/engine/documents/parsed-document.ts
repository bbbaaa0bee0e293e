import type { ParsedDocument } from '../ports.ts';
import type { DocumentFormat } from '../types.ts';

/** Data that a document holds about itself; '', an empty list or null for what it does not name. */
export type DocumentMetadata = Pick<ParsedDocument, 'title' | 'authors' | 'language' | 'publishedAt' | 'modifiedAt'>;

interface ParseOptions {
  /** Encoding that the caller or the server of the file declared; null to detect it. */
  readonly charset: string | null;
  /**
   * Last part of the file's name, in lower case, without the dot; '' for none. It names the language of source code,
   * and is never trusted for the format.
   */
  readonly extension: string;
  /** Called after each page of a file that has pages, with the number of pages done and of all pages. */
  readonly onPage?: (done: number, pages: number) => void;
}

/**
 * Reads one format. It runs only in the parser's child process, and loads its library at its first call.
 * @throws DocumentError with the reason if the file cannot be read
 */
export type FormatParser = (bytes: Uint8Array, options: ParseOptions) => Promise<ParsedDocument>;

/** Bounds of every parser; a file beyond them is refused. Only titles and names are cut. */
export const PARSE_LIMITS = {
  /** Most pages of a PDF, slides of a presentation, sheets of a workbook or chapters of a book. */
  pages: 2_000,
  /** Most pieces of text on one page of a PDF. */
  pieces: 50_000,
  /** Most bytes of an HTML file; where HTML is a string, most UTF-16 units. */
  htmlBytes: 5 * 1024 * 1024,
  /** Most elements in one HTML page. */
  htmlElements: 150_000,
  /** Most attributes of all elements in one HTML page together; reading one takes some 25 µs. */
  htmlAttributes: 250_000,
  /** Most attributes of one HTML element; copying an element takes the square of their number. */
  htmlElementAttributes: 256,
  /** Deepest nesting of elements in HTML and XML, of values in JSON and of parts in an e-mail. */
  depth: 256,
  /** Most elements in one part of an office document. */
  xmlElements: 2_000_000,
  /** Most bytes that all files of a zip archive inflate to together. */
  inflatedBytes: 200 * 1024 * 1024,
  /** Most entries in the directory of a zip archive. */
  zipEntries: 2_000,
  /**
   * Largest ratio of inflated to packed bytes, of each file in a zip archive and of all together. It holds only above
   * `ratioFreeBytes` inflated bytes: small files compress a hundredfold and more in good faith.
   */
  zipRatio: 100,
  ratioFreeBytes: 20 * 1024 * 1024,
  /** Most UTF-16 units of a document's text. */
  textCharacters: 20_000_000,
  /** Most chunks of a document. */
  chunks: 5_000,
  /** Longest title or author's name, in UTF-16 units; a longer one is cut. */
  titleCharacters: 1_024,
} as const;

/**
 * Kinds of text for the chunker, which finds boundaries in each kind by other rules: Markdown, by its headings and
 * blocks; plain text, by blank lines alone; code (JSON too), by indentation and blank lines.
 */
export type TextKind = 'markdown' | 'plain' | 'code';

/** Returns the kind of text that a format's parser gives. */
export function textKindOf(format: DocumentFormat): TextKind {
  if (format === 'code' || format === 'json' || format === 'ndjson') return 'code';
  return format === 'text' ? 'plain' : 'markdown';
}
