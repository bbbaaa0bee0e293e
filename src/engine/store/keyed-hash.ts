import { createHmac } from 'node:crypto';

/**
 * Hashes a value with a secret (HMAC-SHA-256), so that without the secret nobody can check whether a guessed value is
 * right.
 * @param secret 64 hexadecimal digits
 * @returns 32 bytes
 */
export function keyedHash(secret: string, value: string | Uint8Array): Buffer {
  return createHmac('sha256', Buffer.from(secret, 'hex')).update(value).digest();
}
