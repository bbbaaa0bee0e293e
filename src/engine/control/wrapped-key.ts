/** Wraps data keys by the master key, and derives keys from other keys. */

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Cipher, FileKey } from '../find-file-key.ts';

/** Length of a key in bytes. */
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Derives a key from another for one purpose (HKDF with SHA-256). */
export function deriveKey(key: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key, new Uint8Array(0), `cairn ${purpose}`, KEY_BYTES));
}

/**
 * Returns a name for a master key that does not reveal the key: 16 hexadecimal digits derived from it, in practice
 * different for different keys.
 */
export function fingerprintOf(masterKey: Uint8Array): string {
  return Buffer.from(deriveKey(masterKey, 'fingerprint')).toString('hex').slice(0, 16);
}

/** Makes a random data key of 32 bytes. */
export function newDataKey(cipher: Cipher): FileKey {
  return { cipher, bytes: Uint8Array.from(randomBytes(KEY_BYTES)) };
}

/**
 * Wraps a data key by AES-256-GCM. Returns nonce, encrypted key and tag, concatenated. It can be unwrapped only with
 * the same master key and for the same owner.
 */
export function wrapKey(masterKey: Uint8Array, owner: string, { bytes }: FileKey): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', deriveKey(masterKey, 'wrapping'), nonce).setAAD(Buffer.from(owner));
  return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
}

/** Unwraps a data key. Returns undefined if another master key or owner wrapped it, or if it was changed. */
export function unwrapKey(masterKey: Uint8Array, owner: string, wrapped: Uint8Array): Uint8Array | undefined {
  if (wrapped.length !== NONCE_BYTES + KEY_BYTES + TAG_BYTES) return undefined;
  const cipher = createDecipheriv('aes-256-gcm', deriveKey(masterKey, 'wrapping'), wrapped.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(owner))
    .setAuthTag(wrapped.subarray(-TAG_BYTES));
  try {
    const bytes = cipher.update(wrapped.subarray(NONCE_BYTES, -TAG_BYTES));
    return Uint8Array.from(Buffer.concat([bytes, cipher.final()]));
  } catch {
    return undefined;
  }
}
