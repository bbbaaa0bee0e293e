import type { Request } from 'express';
import { decodeToken, encodeToken, EngineError, type NewMemory } from '../../engine/index.ts';
import { detailOf, toEngineError } from '../http-errors.ts';
import { newMemorySchema } from '../schemas/memories.ts';
import type { itemError as itemErrorSchema } from '../schemas/memory-replies.ts';
import { parse } from '../schemas/parse.ts';
import type { Wire } from '../schemas/values.ts';
import { toNewMemory } from '../wire/memories.ts';

/** What stands in a batch's reply for an item that was refused. */
export type ItemError = Wire<typeof itemErrorSchema>;

export function isItemError(item: object): item is ItemError {
  return 'error' in item;
}

/** One item of a batch, or what is wrong with it: it spares the rest. */
export function parseItem(value: unknown): NewMemory | ItemError {
  return orItemError(() => toNewMemory(parse(newMemorySchema, value)));
}

/** @throws what is nobody's fault but ours */
export function orItemError<Value>(work: () => Value): Value | ItemError {
  try {
    return work();
  } catch (thrown) {
    if (!(thrown instanceof EngineError)) throw thrown;
    return itemError(thrown);
  }
}

export function itemError(thrown: unknown): ItemError {
  const error = toEngineError(thrown);
  return { error: { code: error.code, message: detailOf(error) } };
}

export function wantsLines(request: Request): boolean {
  return request.headers.accept?.includes('application/x-ndjson') ?? false;
}

/** One token for several writes: it stands for all that the tenant wrote in between. */
export function spanningToken(before: string | null, next: string | null): string | null {
  if (before === null || next === null) return before ?? next;
  const { storeId, first } = decodeToken(before, before.slice(0, before.indexOf('.')));
  return encodeToken({ storeId, first, last: decodeToken(next, storeId).last });
}
