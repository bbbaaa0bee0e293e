import { EngineError } from '../errors.ts';
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
 * Checks that the row of a memory, read in this commit, has all tags to which the caller's key is bound.
 * @throws EngineError `not_found`
 */
export function requireBounds({ tags }: Pick<MemoryRow, 'tags'>, withinTags: Tags = []): void {
  if (withinTags.length === 0 || hasAll(JSON.parse(tags) as string[], withinTags)) return;
  throw new EngineError('not_found', 'no memory with this id');
}

/**
 * Reads the row of a document that a command is about to change, as `getBoundMemory` reads that of a memory.
 * @throws EngineError `not_found`, as `getDocumentRow`, also for a document that lacks a tag of `withinTags`
 */
export function getBoundDocument({ store, now }: WriteContext, id: string, withinTags: Tags = []): DocumentRow {
  const row = getDocumentRow(store, id, now);
  if (withinTags.length === 0 || hasAll(toDocument(store, row).tags, withinTags)) return row;
  throw new EngineError('not_found', 'no document with this id');
}

const hasAll = (tags: readonly string[], wanted: readonly string[]) => wanted.every((tag) => tags.includes(tag));
