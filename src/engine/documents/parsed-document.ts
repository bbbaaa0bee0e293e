import type { ParsedDocument } from '../ports.ts';
import type { DocumentFormat } from '../types.ts';

/** Data that a document states about itself. A field that it does not state is '', an empty list or null. */
export type DocumentMetadata = Pick<ParsedDocument, 'title' | 'authors' | 'language' | 'publishedAt' | 'modifiedAt'>;

interface ParseOptions {
  /** Encoding that the caller or the file's server declared; null to detect it. */
  readonly charset: string | null;
  /**
   * Extension of the file's name, in lower case, without the dot; '' for none. Only the parser of CSV uses it: with
   * `tsv`, tabs separate the cells. The format of the file was determined before.
   */
  readonly extension: string;
  /** Called after each page of a file that has pages, with the number of pages done and of all pages. */
  readonly onPage?: (done: number, pages: number) => void;
}

/**
 * Reads documents of one format. It runs only in the parser's child process. Its module, with the library of the
 * format, is loaded for the first document of the format.
 * @throws DocumentError with the reason if the file cannot be read; errors of its library may pass, too
 */
export type FormatParser = (bytes: Uint8Array, options: ParseOptions) => Promise<ParsedDocument>;

/** Limits for all parsers. A file that exceeds one of them is refused; only titles and names are cut instead. */
export const PARSE_LIMITS = {
  /** Greatest number of pages of a PDF, slides of a presentation, sheets of a workbook or chapters of a book. */
  pages: 2_000,
  /** Greatest number of text items that pdf.js extracts from one page of a PDF. */
  pieces: 50_000,
  /** Greatest number of bytes of an HTML file; for HTML in a string, greatest number of UTF-16 code units. */
  htmlBytes: 5 * 1024 * 1024,
  /** Greatest number of elements in one HTML page. */
  htmlElements: 150_000,
  /** Greatest number of attributes of all elements in one HTML page together; reading one takes some 25 µs. */
  htmlAttributes: 250_000,
  /** Greatest number of attributes of one HTML element; copying an element takes the square of their number. */
  htmlElementAttributes: 256,
  /** Greatest depth to which elements in HTML and XML, values in JSON and parts of an e-mail may nest. */
  depth: 256,
  /** Greatest number of elements in one XML file of an office document or book. */
  xmlElements: 2_000_000,
  /** Greatest number of bytes that all files of a zip archive inflate to together. */
  inflatedBytes: 200 * 1024 * 1024,
  /** Greatest number of entries in the directory of a zip archive. */
  zipEntries: 2_000,
  /**
   * Greatest ratio of inflated to packed bytes, of each file in a zip archive and of all together. It applies only
   * above `ratioFreeBytes` inflated bytes, since small harmless files may compress by a factor of a hundred and more.
   */
  zipRatio: 100,
  ratioFreeBytes: 20 * 1024 * 1024,
  /** Greatest number of UTF-16 code units of a document's text. */
  textCharacters: 20_000_000,
  /** Greatest number of chunks of a document. */
  chunks: 5_000,
  /** Greatest length of a title or an author's name, in UTF-16 code units; a longer one is cut. */
  titleCharacters: 1_024,
} as const;

/**
 * Kinds of text, for which the chunker finds boundaries by different rules: in Markdown by headings and blocks, in
 * plain text by blank lines alone, in code (and JSON) by indentation and blank lines.
 */
export type TextKind = 'markdown' | 'plain' | 'code';

/** Returns the kind of text that the parser of a format produces. */
export function textKindOf(format: DocumentFormat): TextKind {
  if (format === 'code' || format === 'json' || format === 'ndjson') return 'code';
  return format === 'text' ? 'plain' : 'markdown';
}
