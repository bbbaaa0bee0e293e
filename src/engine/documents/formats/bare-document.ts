import { DocumentError } from '../document-error.ts';
import { PARSE_LIMITS } from '../parsed-document.ts';
import type { ParsedDocument } from '../../ports.ts';

/** Returns a document with a text and the given data; all other data is empty ('', [] or null). */
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

/** Returns the Unix ms of a date in any form that `Date.parse` reads; null if it is none. */
export function instantOf(date: string | undefined): number | null {
  const instant = date === undefined ? NaN : Date.parse(date);
  return Number.isNaN(instant) ? null : instant;
}

/** Returns the error for a text over the limit, in formats whose text can be many times the size of the file. */
export function tooMuchText(): DocumentError {
  return new DocumentError(
    'document_too_large',
    `The document holds more than ${PARSE_LIMITS.textCharacters} characters of text: split it.`,
  );
}
