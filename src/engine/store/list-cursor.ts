/**
 * Cursors of lists: the place of an entry in the order of its list, as a text that callers hand back unread. A page
 * begins behind a place, not at a count of entries, so entries that come and go between two pages neither repeat nor
 * hide others. A cursor holds nothing that its caller was not shown, but for the number of a memory.
 */
import { EngineError } from '../errors.ts';
import { MAX_CURSOR_CHARACTERS } from '../types.ts';

/** A place in the order of a list: the values by which it is sorted. */
export type Place = readonly (string | number)[];

/** @param list name of the list and its order, such as `memories.id.asc` */
export function encodeCursor(list: string, place: Place): string {
  return Buffer.from(JSON.stringify([list, ...place])).toString('base64url');
}

/**
 * Reads a cursor.
 * @param shape the type of each value of the place
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
