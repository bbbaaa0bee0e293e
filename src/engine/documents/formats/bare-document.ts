import { DocumentError } from '../document-error.ts';
import { PARSE_LIMITS } from '../parsed-document.ts';
import type { ParsedDocument } from '../../ports.ts';

/** Makes a parsed document from a text and the given data. All other fields are empty ('', [] or null). */
export function bareDocument(text: string, data: Partial<Omit<ParsedDocument, 'text'>> = {}): ParsedDocument {
  return {
    text,
    pages: [],
    title: '',
    authors: [],
    language: null,
    publishedAt: null,
    modifiedAt: null,
    warnings: [],
    ...data,
  };
}

/**
 * Parses a date in any form that `Date.parse` reads, and returns it in Unix ms; null if it is missing or cannot be
 * parsed.
 */
export function instantOf(date: string | undefined): number | null {
  const instant = date === undefined ? NaN : Date.parse(date);
  return Number.isNaN(instant) ? null : instant;
}

/**
 * Creates the error `document_too_large` for a text over `PARSE_LIMITS.textCharacters`, for formats whose text can be
 * many times longer than the file.
 */
export function tooMuchText(): DocumentError {
  return new DocumentError(
    'document_too_large',
    `The document holds more than ${PARSE_LIMITS.textCharacters} characters of text: split it.`,
  );
}
