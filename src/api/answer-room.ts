import type { AnswerRoom } from '../engine/adapters/index.ts';

const MIB = 1024 * 1024;
/** Greatest number of bytes of other servers' answers that are held at once: for one key, and for all keys together. */
const KEY_BYTES = 32 * MIB;
const TOTAL_BYTES = 96 * MIB;

/** Bytes that are held now for each key. */
const held = new Map<string, number>();
let total = 0;

/**
 * Opens an account of the memory that the answers of other servers to one federated query take. Only bytes that have
 * arrived are counted, so a server that sends nothing takes none. `take` returns false, and counts nothing, if a key
 * would hold more than 32 MiB or all keys together more than 96 MiB.
 * @param key text that names the API key that asks, with its tenant
 * @returns the account; `leave` gives back all that was taken, and nothing can be taken afterwards
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
