import { EngineError } from '../errors.ts';
import { hasTags, requireBounds } from '../store/bounds.ts';
import { toDocument } from '../store/document-views.ts';
import { type DocumentRow, getDocumentRow } from '../store/documents.ts';
import { getMemoryRow, type MemoryRow } from '../store/memories.ts';
import type { WriteContext } from './write-context.ts';

/** Tags to which the caller's key is bound; empty or undefined for a key without such a bound. */
type Tags = readonly string[] | undefined;

/**
 * Reads the row of a memory that a command is about to change or to link. The bounds of the caller's key are checked on
 * this row, in the commit that follows: a memory may have lost a tag since the caller found it.
 * @throws EngineError `not_found`, as `getMemoryRow`, also for a memory that lacks a tag of `withinTags`
 */
export function getBoundMemory({ store, now }: WriteContext, id: string, withinTags: Tags): MemoryRow {
  const row = getMemoryRow(store, id, now);
  requireBounds(row, withinTags);
  return row;
}

/**
 * Reads the row of a document that a command is about to change, as `getBoundMemory` reads that of a memory.
 * @throws EngineError `not_found`, as `getDocumentRow`, also for a document that lacks a tag of `withinTags`
 */
export function getBoundDocument({ store, now }: WriteContext, id: string, withinTags: Tags = []): DocumentRow {
  const row = getDocumentRow(store, id, now);
  if (withinTags.length === 0 || hasTags(toDocument(store, row).tags, withinTags)) return row;
  throw new EngineError('not_found', 'no document with this id');
}
