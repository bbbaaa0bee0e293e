import { createHmac } from 'node:crypto';

/**
 * Hashes a value with a secret (HMAC-SHA-256), so that nobody without the secret can confirm a guess of the value.
 * @param secret 64 hexadecimal digits
 * @returns 32 bytes
 */
export function keyedHash(secret: string, value: string | Uint8Array): Buffer {
  return createHmac('sha256', Buffer.from(secret, 'hex')).update(value).digest();
}
