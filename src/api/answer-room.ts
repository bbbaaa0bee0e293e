import type { AnswerRoom } from '../engine/adapters/index.ts';

const MIB = 1024 * 1024;
/** Bytes of the answers of other servers that are held at once: for one key, and for all keys together. */
const KEY_BYTES = 32 * MIB;
const TOTAL_BYTES = 96 * MIB;

/** Bytes that are held for each key. */
const held = new Map<string, number>();
let total = 0;

/**
 * Opens room for the answers to one federated question. What is counted is what has arrived, so a server that says
 * nothing takes no room, and servers that say much cost the key that asked them their own answers.
 * @param key who asks
 * @returns the room; `leave` gives back all that was taken, and no more can be taken afterwards
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
