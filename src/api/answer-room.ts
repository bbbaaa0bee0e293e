import type { AnswerRoom } from '../engine/adapters/index.ts';

const MIB = 1024 * 1024;
/**
 * Greatest number of bytes of members' answers that are held in memory at once for one API key; `TOTAL_BYTES` is the
 * limit for all keys together.
 */
const KEY_BYTES = 32 * MIB;
const TOTAL_BYTES = 96 * MIB;

/** Bytes of members' answers that are held in memory now, by API key. */
const held = new Map<string, number>();
let total = 0;

/**
 * Opens a counter of the bytes that the answers of the members of one federated query, which are tenants and other
 * servers, take in memory until the slowest member has answered. It enforces the limits: 32 MiB for one key and 96 MiB
 * for all keys. `take` counts bytes that have arrived; it returns false, and
 * counts nothing, if a limit would be exceeded. `give` subtracts bytes that were freed.
 * @param key text that identifies the API key that sent the query, together with its tenant
 * @returns the counter; `leave` subtracts all bytes of the query at its end, and `take` returns false afterwards
 */
export function openAnswerRoom(key: string): AnswerRoom & { leave(): void } {
  let own = 0;
  let hasLeft = false;
  const change = (bytes: number) => {
    own += bytes;
    total += bytes;
    const ofKey = (held.get(key) ?? 0) + bytes;
    if (ofKey === 0) held.delete(key);
    else held.set(key, ofKey);
  };
  return {
    take(bytes) {
      if (hasLeft || (held.get(key) ?? 0) + bytes > KEY_BYTES || total + bytes > TOTAL_BYTES) return false;
      change(bytes);
      return true;
    },
    give(bytes) {
      if (!hasLeft) change(-bytes);
    },
    leave() {
      hasLeft = true;
      change(-own);
    },
  };
}
