/**
 * Encrypts files while they arrive. An encrypted (sealed) file begins with a random salt and consists of frames that
 * are encrypted by AES-256-GCM. The nonce of a frame has the frame's number and whether it is the last one, so that
 * missing, moved or cut frames are detected.
 */

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Encoder } from '../types.ts';

const MAGIC = Buffer.from('cairn sealed 1\0\0');
const SALT_BYTES = 32;
const TAG_BYTES = 16;
/** Number of unencrypted bytes in every frame of an encrypted file but the last. */
const FRAME_BYTES = 64 * 1024;

/** The encoder that leaves bytes unchanged. */
export const plainEncoder: Encoder = { update: (bytes) => bytes, end: () => new Uint8Array(0) };

/**
 * Creates an encoder that encrypts (seals) a file.
 * @param key 32 bytes, from which each file's own key is derived
 * @param name name of the file; the file can be decrypted only under this name
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
      // A full frame is held back until more bytes follow, since only the last frame says that it is the last.
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

/** Tells whether bytes begin like a file that `createSealer` has encrypted. */
export function isSealed(bytes: Uint8Array): boolean {
  return Buffer.compare(bytes.subarray(0, MAGIC.length), MAGIC) === 0;
}

/**
 * Decrypts a file that `createSealer` has encrypted.
 * @returns its unencrypted bytes; undefined for another key or name, if the file was changed, and if it is not such a
 *   file
 */
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
