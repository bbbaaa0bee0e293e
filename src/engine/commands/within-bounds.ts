import { EngineError } from '../errors.ts';
import { hasTags, requireBounds } from '../store/bounds.ts';
import { getGenerationRow } from '../store/document-generations.ts';
import { toDocument } from '../store/document-views.ts';
import { type DocumentRow, findErasableRow, getDocumentRow } from '../store/documents.ts';
import { getMemoryRow, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { parseStored } from '../store/stored-json.ts';
import type { DocumentDeleteOptions } from '../types.ts';
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
 * @throws EngineError `not_found`, as `getDocumentRow`, also for a document of which a version lacks a tag of
 *   `withinTags` (`versionTags`)
 */
export function getBoundDocument({ store, now }: WriteContext, id: string, withinTags: Tags = []): DocumentRow {
  const row = getDocumentRow(store, id, now);
  if (withinTags.length === 0 || versionTags(store, row).every((tags) => hasTags(tags, withinTags))) return row;
  throw new EngineError('not_found', 'no document with this id');
}

/**
 * Returns the tags of the version of a document that callers see, and of the version that waits to be read, if there is
 * one. A change drops that version, which may take the document out of the bounds of a key.
 */
export function versionTags(store: Store, row: DocumentRow): (readonly string[])[] {
  const shown = toDocument(store, row).tags;
  if (row.live_no === null || row.next_no === null) return [shown];
  return [shown, parseStored(getGenerationRow(store, row.next_no).tags) as string[]];
}

/**
 * Reads the row of a document that a delete is about to erase, whether others have hidden it for that already or not.
 * @throws EngineError `not_found`, also for a document that has expired, belongs to another user than `userId`, or
 *   lacks a tag of `withinTags`
 */
export function getErasableDocument(
  store: Store,
  { id, now }: { readonly id: string; readonly now: number },
  { userId, withinTags = [] }: DocumentDeleteOptions,
): DocumentRow {
  const row = findErasableRow(store, id, now);
  if (
    row !== undefined &&
    (userId === undefined || userId === row.user_id) &&
    (withinTags.length === 0 || hasTags(toDocument(store, row).tags, withinTags))
  )
    return row;
  throw new EngineError('not_found', 'no document with this id');
}
