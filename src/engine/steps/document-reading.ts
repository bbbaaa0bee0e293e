import type { DocumentWait } from '../control/document-shares.ts';
import type { ParseResult } from '../ports.ts';
import type { DocumentRow } from '../store/documents.ts';
import type { GenerationRow } from '../store/document-generations.ts';
import type { DocumentFormat } from '../types.ts';

/** A reading of a document by its ingest job, and the generation (set of chunks) that it makes. */
export interface DocumentReading {
  readonly document: DocumentRow;
  readonly generation: GenerationRow;
  /** Whether queries find the generation already: an earlier attempt made it visible and was then interrupted. */
  readonly isShown: boolean;
  /**
   * W3C trace context of the request that added the document, which the jobs of its chunks continue; null if that was
   * not traced.
   */
  readonly trace: string | null;
}

/** Result of an ingest step. */
export type IngestOutcome =
  /** The job was cancelled, or another worker holds it; queries find what they found before. */
  | { readonly kind: 'lost' }
  /** The web page is the same as when it was last fetched, so queries go on to find the text of the earlier reading. */
  | { readonly kind: 'unchanged' }
  /** The document was read, but the tenant may not store as many memories now; queries find what they found before. */
  | { readonly kind: 'waits'; readonly wait: DocumentWait }
  /**
   * The file has no text. Queries no longer find the text of an earlier reading, unless the claim was lost before the
   * end: then the document was left as it was.
   */
  | { readonly kind: 'empty' }
  /** Queries now find the text of this reading. `pages` is null for a format without pages. */
  | { readonly kind: 'shown'; readonly format: DocumentFormat | null; readonly pages: number | null };

/**
 * Returns the title of a document: the one that the caller gave, else the one that the file states, else the file's
 * name without its extension; '' if there is none of them.
 */
export function titleOf(generation: GenerationRow, parsed: ParseResult): string {
  return generation.given_title || parsed.title || generation.file_name.replace(/\.[^.]*$/, '');
}

/**
 * Whether two generations (readings of a document) have the same session, type, tags, metadata, event time and expiry.
 * Their memories get these fields.
 */
export function isLabelledAlike(one: GenerationRow, other: GenerationRow): boolean {
  const labels = ['session_id', 'type', 'tags', 'metadata', 'event_time', 'expires_at'] as const;
  return labels.every((name) => one[name] === other[name]);
}
