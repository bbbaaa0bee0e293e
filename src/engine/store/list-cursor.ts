/**
 * Cursors of lists: the position of an entry in the order of its list, encoded as a text that callers send back. A page
 * begins after a position and not at an offset, so entries that are added or deleted between two pages neither repeat
 * nor hide others. A cursor holds only values that its caller has seen, and perhaps the number of a memory.
 */

import { EngineError } from '../errors.ts';
import { MAX_CURSOR_CHARACTERS } from '../types.ts';

/** Position in the order of a list: the values by which its entries are sorted. */
export type Place = readonly (string | number)[];

/** Encodes a position as a cursor. @param list name of the list and its order, such as `memories.id.asc` */
export function encodeCursor(list: string, place: Place): string {
  return Buffer.from(JSON.stringify([list, ...place])).toString('base64url');
}

/**
 * Decodes a cursor.
 * @param list name of the list and its order, which the cursor must have
 * @param shape type of each value of the position
 * @throws EngineError `invalid` for a text that is no cursor of this list in this order
 */
export function decodeCursor<P extends Place>(
  list: string,
  cursor: string,
  shape: { readonly [N in keyof P]: P[N] extends string ? 'string' : 'number' },
): P {
  const [named, ...place] = parsedList(cursor);
  if (named !== list || place.length !== shape.length || !place.every((value, at) => isOf(shape[at]!, value))) {
    throw new EngineError('invalid', 'cursor: not one that this list gave out in this order');
  }
  return place as unknown as P;
}

function parsedList(cursor: string): unknown[] {
  if (cursor.length > MAX_CURSOR_CHARACTERS || !/^[\w-]+$/.test(cursor)) return [];
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}

function isOf(type: 'string' | 'number', value: unknown): boolean {
  return type === 'number' ? Number.isSafeInteger(value) : typeof value === 'string' && value.isWellFormed();
}
