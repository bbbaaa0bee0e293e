/**
 * Files that are sealed as they arrive: a start with a random salt, then frames of AES-256-GCM. Each frame's nonce
 * holds its number and whether it is the last, so that frames that are left out, moved or cut off are noticed.
 */

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Encoder } from '../types.ts';

const MAGIC = Buffer.from('cairn sealed 1\0\0');
const SALT_BYTES = 32;
const TAG_BYTES = 16;
/** Bytes of text in every frame but the last. */
const FRAME_BYTES = 64 * 1024;

/** Stores bytes as they are. */
export const plainEncoder: Encoder = { update: (bytes) => bytes, end: () => new Uint8Array(0) };

/**
 * Makes an encoder that seals a file.
 * @param key  32 bytes; each file gets a key of its own from it
 * @param name name of the file, which the reader has to know: the file cannot be read under another
 */
export function createSealer(key: Uint8Array, name: string): Encoder {
  const salt = randomBytes(SALT_BYTES);
  const fileKey = keyOf(key, salt, name);
  let held: Uint8Array[] = [Buffer.alloc(0)];
  let heldBytes = 0;
  let frames = 0;
  const start: Uint8Array[] = [MAGIC, salt];
  const take = (): Uint8Array[] => start.splice(0);
  return {
    update(bytes) {
      held.push(bytes);
      heldBytes += bytes.length;
      // A full frame is kept until more follows, since only the last one says that it is the last.
      if (heldBytes <= FRAME_BYTES) return Buffer.alloc(0);
      const all = Buffer.concat(held);
      const out = take();
      let at = 0;
      for (; all.length - at > FRAME_BYTES; at += FRAME_BYTES) {
        out.push(seal(fileKey, all.subarray(at, at + FRAME_BYTES), frames++, false));
      }
      held = [Buffer.from(all.subarray(at))];
      heldBytes = all.length - at;
      return Buffer.concat(out);
    },
    end: () => Buffer.concat([...take(), seal(fileKey, Buffer.concat(held), frames, true)]),
  };
}

/** Tells whether bytes are those of a sealed file. */
export function isSealed(bytes: Uint8Array): boolean {
  return Buffer.compare(bytes.subarray(0, MAGIC.length), MAGIC) === 0;
}

/** Opens a sealed file. @returns its bytes in clear; undefined if the key or the name is another, or it was changed */
export function unseal(key: Uint8Array, name: string, sealed: Uint8Array): Buffer | undefined {
  if (!isSealed(sealed)) return undefined;
  const fileKey = keyOf(key, sealed.subarray(MAGIC.length, MAGIC.length + SALT_BYTES), name);
  const frames = sealed.subarray(MAGIC.length + SALT_BYTES);
  const opened: Buffer[] = [];
  for (let at = 0, no = 0; ; at += FRAME_BYTES + TAG_BYTES, no++) {
    const frame = frames.subarray(at, at + FRAME_BYTES + TAG_BYTES);
    const isLast = at + FRAME_BYTES + TAG_BYTES >= frames.length;
    if (frame.length < TAG_BYTES) return undefined;
    const decipher = createDecipheriv('aes-256-gcm', fileKey, nonceOf(no, isLast)).setAuthTag(
      frame.subarray(-TAG_BYTES),
    );
    try {
      opened.push(decipher.update(frame.subarray(0, -TAG_BYTES)), decipher.final());
    } catch {
      return undefined;
    }
    if (isLast) return Buffer.concat(opened);
  }
}

function seal(fileKey: Uint8Array, bytes: Uint8Array, no: number, isLast: boolean): Buffer {
  const cipher = createCipheriv('aes-256-gcm', fileKey, nonceOf(no, isLast));
  return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
}

function keyOf(key: Uint8Array, salt: Uint8Array, name: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key, salt, `cairn upload ${name}`, 32));
}

function nonceOf(no: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(no, 4);
  nonce.writeUInt32BE(isLast ? 1 : 0, 8);
  return nonce;
}
