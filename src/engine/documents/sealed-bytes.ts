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
/**
 * Number of bytes of the original file in each frame (encrypted part) of an encrypted file; the last frame may have
 * fewer.
 */
const FRAME_BYTES = 64 * 1024;
/** Number of bytes before the first frame of an encrypted file: the mark of such files and the salt. */
const HEAD_BYTES = MAGIC.length + SALT_BYTES;
/** Size of an encrypted frame (bytes); the last frame may be smaller. */
const SEALED_FRAME_BYTES = FRAME_BYTES + TAG_BYTES;

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
 * @returns its unencrypted bytes; undefined if it was encrypted with another key or under another name, if it was
 *   changed, and if it is not encrypted
 */
export function unseal(key: Uint8Array, name: string, sealed: Uint8Array): Buffer | undefined {
  if (!isSealed(sealed)) return undefined;
  const fileKey = keyOf(key, sealed.subarray(MAGIC.length, MAGIC.length + SALT_BYTES), name);
  const frames = sealed.subarray(HEAD_BYTES);
  const opened: Buffer[] = [];
  for (let at = 0, no = 0; ; at += SEALED_FRAME_BYTES, no++) {
    const isLast = at + SEALED_FRAME_BYTES >= frames.length;
    const bytes = openFrame(fileKey, frames.subarray(at, at + SEALED_FRAME_BYTES), no, isLast);
    if (bytes === undefined) return undefined;
    opened.push(bytes);
    if (isLast) return Buffer.concat(opened);
  }
}

/** An encrypted file that can be read from any offset. */
export interface SealedFile {
  /** Size of the encrypted file in bytes. */
  readonly size: number;
  /** Reads bytes from an offset; fewer only where the file ends before. */
  read(at: number, bytes: number): Promise<Buffer>;
}

/**
 * Decrypts a part of a file that `createSealer` has encrypted, a frame at a time. Only the frames that the part touches
 * are read and decrypted, so that a short part costs as much in a long file as in a short one.
 * @param part offsets in the unencrypted file (bytes); `end` is exclusive, and greater than `start`
 * @returns the unencrypted bytes; undefined, as the last value, if the file was encrypted with another key or under
 *   another name, if a frame of the part was changed, and if the file ends before the part does
 */
export async function* unsealPart(
  key: Uint8Array,
  name: string,
  { file, start, end }: { readonly file: SealedFile; readonly start: number; readonly end: number },
): AsyncGenerator<Buffer | undefined> {
  const head = await file.read(0, HEAD_BYTES);
  const frameCount = Math.ceil((file.size - HEAD_BYTES) / SEALED_FRAME_BYTES);
  if (!isSealed(head) || end > file.size - HEAD_BYTES - frameCount * TAG_BYTES) {
    yield undefined;
    return;
  }
  const fileKey = keyOf(key, head.subarray(MAGIC.length), name);
  for (let no = Math.floor(start / FRAME_BYTES); no * FRAME_BYTES < end; no++) {
    const frame = await file.read(HEAD_BYTES + no * SEALED_FRAME_BYTES, SEALED_FRAME_BYTES);
    const bytes = openFrame(fileKey, frame, no, no === frameCount - 1);
    yield bytes?.subarray(Math.max(0, start - no * FRAME_BYTES), end - no * FRAME_BYTES);
    if (bytes === undefined) return;
  }
}

/**
 * Decrypts a frame; returns undefined if it was changed, is not the frame of the number `no`, or is the last one
 * although `isLast` is false, or the reverse.
 */
function openFrame(fileKey: Uint8Array, frame: Uint8Array, no: number, isLast: boolean): Buffer | undefined {
  if (frame.length < TAG_BYTES) return undefined;
  const tag = frame.subarray(-TAG_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', fileKey, nonceOf(no, isLast)).setAuthTag(tag);
  try {
    return Buffer.concat([decipher.update(frame.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch {
    return undefined;
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
