import type { ParsedDocument } from '../ports.ts';
import type { DocumentFormat } from '../types.ts';

export interface ParseOptions {
  /** As the caller or the server that it was fetched from declared it; null to detect it. */
  readonly charset: string | null;
  /** The name's last part, for the language of source code; never trusted for the format. */
  readonly extension: string;
  /** Told after each page of a long file. */
  readonly onPage?: (done: number, pages: number) => void;
}

/**
 * Reads one format. Runs only in the parser's child process; loads its library when it is called first.
 * @throws DocumentError with the reason why it cannot
 */
export type FormatParser = (bytes: Uint8Array, options: ParseOptions) => Promise<ParsedDocument>;

/** Bounds of every parser; what goes beyond is refused, not cut. */
export const PARSE_LIMITS = {
  pages: 2_000,
  htmlBytes: 5 * 1024 * 1024,
  htmlElements: 150_000,
  depth: 256,
  /** In one part of an office document. */
  xmlElements: 2_000_000,
  inflatedBytes: 200 * 1024 * 1024,
  zipEntries: 2_000,
  /** Only above `ratioFreeBytes` inflated bytes: small files compress a hundredfold and more in good faith. */
  zipRatio: 100,
  ratioFreeBytes: 20 * 1024 * 1024,
  textCharacters: 20_000_000,
  chunks: 5_000,
  titleCharacters: 1_024,
} as const;

/** Formats as a chunker's hint: what is not Markdown has its own boundaries. */
export type TextKind = 'markdown' | 'plain' | 'code';

export function textKindOf(format: DocumentFormat): TextKind {
  if (format === 'code' || format === 'json' || format === 'ndjson') return 'code';
  return format === 'text' ? 'plain' : 'markdown';
}
