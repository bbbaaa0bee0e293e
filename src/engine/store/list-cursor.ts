/**
 * Cursors of lists: the position of an entry in the order of its list, encoded as a text that callers pass back. A page
 * begins after a position and not at a number of entries, so entries that come and go between two pages neither repeat
 * nor hide others. A page may end at an entry that its caller must not see, so positions are sealed.
 */

import { createCipheriv, createDecipheriv } from 'node:crypto';
import { assert, EngineError } from '../errors.ts';
import { MAX_CURSOR_CHARACTERS } from '../types.ts';
import { keyedHash } from './keyed-hash.ts';
import type { Store } from './open-store.ts';
import { findInfo } from './store-info.ts';

/** Position in the order of a list: the values by which its entries are sorted. */
export type Place = readonly (string | number)[];

/**
 * Encodes a position as a cursor that only the same tenant's data can read.
 * @param list name of the list and its order, such as `memories.id.asc`
 */
export function sealCursor(store: Store, list: string, place: Place): string {
  return createSealer(store, list)(place);
}

/** Makes a function that encodes positions of a list as `sealCursor` does, and reads their key only once. */
export function createSealer(store: Store, list: string): (place: Place) => string {
  let key: Buffer | undefined;
  return (place) => {
    key ??= keyOf(store);
    const clear = Buffer.from(JSON.stringify([list, ...place]));
    // The nonce depends on the text, so that no two texts share one, and equal pages have equal cursors.
    const nonce = keyedHash(key.toString('hex'), clear).subarray(0, NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key, nonce);
    const sealed = Buffer.concat([cipher.update(clear), cipher.final()]);
    return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64url');
  };
}

/**
 * Decodes a cursor that `sealCursor` made.
 * @param list name of the list and its order, which the cursor must have
 * @param shape type of each value of the position
 * @throws EngineError `invalid` for a text that is no cursor of this list in this order
 */
export function openCursor<P extends Place>(
  store: Store,
  list: string,
  cursor: string,
  shape: { readonly [N in keyof P]: P[N] extends string ? 'string' : 'number' },
): P {
  const open = (bytes: Buffer) => {
    const end = bytes.length - TAG_BYTES;
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', keyOf(store), nonce, { authTagLength: TAG_BYTES });
    decipher.setAuthTag(bytes.subarray(end));
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, end)), decipher.final()]);
  };
  return placeOf(parsedList(cursor, open), list, shape);
}

/** Number of bytes of the nonce of a sealed cursor (AES-GCM), which stands at its beginning. */
const NONCE_BYTES = 12;
/** Number of bytes of the tag of a sealed cursor (AES-GCM), which stands at its end. */
const TAG_BYTES = 16;

function keyOf(store: Store): Buffer {
  const secret = findInfo(store, 'idempotency_secret');
  assert(secret !== undefined, 'a migration made the secret of the stored replies');
  return keyedHash(secret, 'cursors of lists');
}

function placeOf<P extends Place>(
  [named, ...place]: readonly unknown[],
  list: string,
  shape: { readonly [N in keyof P]: P[N] extends string ? 'string' : 'number' },
): P {
  if (named !== list || place.length !== shape.length || !place.every((value, at) => isOf(shape[at]!, value))) {
    throw new EngineError('invalid', 'cursor: not one that this list gave out in this order');
  }
  return place as unknown as P;
}

/** Parses the list in a cursor; returns an empty one if there is none. @param open gives the bytes in clear */
function parsedList(cursor: string, open: (bytes: Buffer) => Buffer): unknown[] {
  if (cursor.length > MAX_CURSOR_CHARACTERS || !/^[\w-]+$/.test(cursor)) return [];
  try {
    const parsed: unknown = JSON.parse(open(Buffer.from(cursor, 'base64url')).toString('utf8'));
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}

function isOf(type: 'string' | 'number', value: unknown): boolean {
  return type === 'number' ? Number.isSafeInteger(value) : typeof value === 'string' && value.isWellFormed();
}
