import type { ParseResult } from '../ports.ts';
import type { DocumentRow } from '../store/documents.ts';
import type { GenerationRow } from '../store/document-generations.ts';
import type { DocumentFormat } from '../types.ts';

/** A reading of a document by its ingest job, and the generation that it makes. */
export interface DocumentReading {
  readonly document: DocumentRow;
  readonly generation: GenerationRow;
  /** True if queries find the generation already: an earlier attempt was broken off after that. */
  readonly isShown: boolean;
  /**
   * W3C trace context of the request that handed the document in, which the jobs of its chunks carry on; null for none.
   */
  readonly trace: string | null;
}

/** The end of an ingest step. */
export type IngestOutcome =
  /** The job was cancelled, or another worker holds it: nothing was shown. */
  | { readonly kind: 'lost' }
  /** The page is as it was when it was fetched last: the live generation stays. */
  | { readonly kind: 'unchanged' }
  /** There is no text in the file. */
  | { readonly kind: 'empty' }
  /** Queries find the new generation. `pages` is null for a format without pages. */
  | { readonly kind: 'shown'; readonly format: DocumentFormat | null; readonly pages: number | null };

/**
 * Returns the title that the caller gave, or that the file states, or else the file's name without its ending; '' where
 * there is none of them.
 */
export function titleOf(generation: GenerationRow, parsed: ParseResult): string {
  return generation.given_title || parsed.title || generation.file_name.replace(/\.[^.]*$/, '');
}

/**
 * True if two generations have the same session, type, tags, metadata, event time and expiry, which their parts take
 * over.
 */
export function isLabelledAlike(one: GenerationRow, other: GenerationRow): boolean {
  const labels = ['session_id', 'type', 'tags', 'metadata', 'event_time', 'expires_at'] as const;
  return labels.every((name) => one[name] === other[name]);
}
