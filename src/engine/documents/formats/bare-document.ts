import { DocumentError } from '../document-error.ts';
import { PARSE_LIMITS } from '../parsed-document.ts';
import type { ParsedDocument } from '../../ports.ts';

/** A document of which nothing but its text is known. */
export function bareDocument(text: string, known: Partial<Omit<ParsedDocument, 'text'>> = {}): ParsedDocument {
  return {
    text,
    pages: [],
    title: '',
    authors: [],
    language: null,
    publishedAt: null,
    modifiedAt: null,
    warnings: [],
    ...known,
  };
}

/** Unix ms of a date in any form that JavaScript reads; null for none. */
export function instantOf(date: string | undefined): number | null {
  const instant = date === undefined ? NaN : Date.parse(date);
  return Number.isNaN(instant) ? null : instant;
}

/** For formats whose text can be many times the file. */
export function tooMuchText(): DocumentError {
  return new DocumentError(
    'document_too_large',
    `The document holds more than ${PARSE_LIMITS.textCharacters} characters of text: split it.`,
  );
}
