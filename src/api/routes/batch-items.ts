import type { Request } from 'express';
import { EngineError, type NewMemory, type NotedItem } from '../../engine/index.ts';
import { detailOf, toEngineError } from '../http-errors.ts';
import { newMemorySchema } from '../schemas/memories.ts';
import type { BatchOutcome, itemError as itemErrorSchema } from '../schemas/memory-replies.ts';
import { parse } from '../schemas/parse.ts';
import type { Wire } from '../schemas/values.ts';
import { toNewMemory } from '../wire/memories.ts';

/** Result of an item that was refused, in the reply to a batch: the code and message of its error. */
export type ItemError = Wire<typeof itemErrorSchema>;

export function isItemError(item: object): item is ItemError {
  return 'error' in item;
}

/** Parses one item of a batch. An invalid item becomes an `ItemError`, so that it does not affect other items. */
export function parseItem(value: unknown): NewMemory | ItemError {
  return orItemError(() => toNewMemory(parse(newMemorySchema, value)));
}

/**
 * Returns the result of `work`, or the item's error if it throws an `EngineError`. It throws every other error, which
 * only a bug can cause.
 */
export function orItemError<Value>(work: () => Value): Value | ItemError {
  try {
    return work();
  } catch (thrown) {
    if (!(thrown instanceof EngineError)) throw thrown;
    return itemError(thrown);
  }
}

/** Makes the result of an item that failed with `thrown`. For a bug (code `internal`), its message is a fixed text. */
export function itemError(thrown: unknown): ItemError {
  const error = toEngineError(thrown);
  return { error: { code: error.code, message: detailOf(error) } };
}

/**
 * Returns a copy of an item's error that is safe to keep in a receipt, since it contains no text of the item: its
 * message is the name of a known field, or `the item`.
 */
function withoutText({ code, message }: ItemError['error']): ItemError['error'] {
  const [field = ''] = message.split(/[.[:]/, 1);
  return { code, message: Object.hasOwn(newMemorySchema.shape, field) ? field : 'the item' };
}

/**
 * Makes the entries of a batch's receipt. `results` has the result of each item, in the same order as `items`.
 * @param before number of items of the batch in earlier calls; the entries are numbered from `before` + 1
 */
export function notedItems(
  items: readonly (NewMemory | ItemError)[],
  results: readonly (BatchOutcome | ItemError)[],
  before = 0,
): NotedItem[] {
  return results.map((result, place): NotedItem => {
    const item = before + place + 1;
    if (isItemError(result)) {
      const error = isItemError(items[place]!) ? withoutText(result.error) : result.error;
      return { item, fate: 'refused', memoryId: null, content: null, error };
    }
    const fate = 'deduplicated' in result ? 'merged' : 'stored';
    return { item, fate, memoryId: result.id, content: (items[place] as NewMemory).content, error: null };
  });
}

/** Tells whether the client asks for a reply in NDJSON. */
export function wantsLines(request: Request): boolean {
  return request.headers.accept?.includes('application/x-ndjson') ?? false;
}
