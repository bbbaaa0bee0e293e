import { EngineError } from '../errors.ts';
import type { MemoryRow } from './memories.ts';

/**
 * Checks that the row of a memory, or of a chunk of a document, has all tags to which the caller's key is bound. Call
 * it on the row from which the answer is made, or in the commit that changes it: a memory may have lost a tag since the
 * caller found it, and a standby that is behind may have a text from before the memory got its tags.
 * @param asked what the caller has asked for by its id, for the message of the error
 * @throws EngineError `not_found`
 */
export function requireBounds(
  { tags }: Pick<MemoryRow, 'tags'>,
  withinTags: readonly string[] = [],
  asked: 'memory' | 'document' = 'memory',
): void {
  if (withinTags.length === 0 || hasTags(JSON.parse(tags) as string[], withinTags)) return;
  throw new EngineError('not_found', `no ${asked} with this id`);
}

/** Whether these tags hold all that are wanted. */
export function hasTags(tags: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((tag) => tags.includes(tag));
}
