import type { AnswerRoom } from '../engine/adapters/index.ts';
import { OwnedBytes, type Owner } from './byte-share.ts';

const MIB = 1024 * 1024;
/**
 * Greatest number of bytes of answers to federated queries, one from each member, that are held in memory at once for
 * one API key. `TENANT_BYTES` is the limit for all keys of one tenant together, `TOTAL_BYTES` that for all keys.
 */
const KEY_BYTES = 32 * MIB;
const TENANT_BYTES = 64 * MIB;
const TOTAL_BYTES = 96 * MIB;

/** Bytes of the answers of federated queries' members (tenants and other servers) that are held in memory now. */
const held = new OwnedBytes();

/**
 * Opens a counter of the bytes that the answers of the members of one federated query, which are tenants and other
 * servers, take in memory until the slowest member has answered. It enforces the limits: 32 MiB for one key, 64 MiB for
 * the keys of one tenant and 96 MiB for all keys. `take` counts bytes that have arrived; it returns false, and counts
 * nothing, if a limit would be exceeded. `give` subtracts bytes that were freed.
 * @param owner the API key that sent the query, and the tenant to which it was sent
 * @returns the counter; `leave` subtracts all bytes of the query at its end. After that `take` returns false and `give`
 *   does nothing
 */
export function openAnswerRoom(owner: Owner): AnswerRoom & { leave(): void } {
  let own = 0;
  let hasEnded = false;
  const change = (bytes: number) => {
    own += bytes;
    held.add(owner, bytes);
  };
  return {
    take(bytes) {
      const { key, tenant } = held.of(owner);
      if (hasEnded || key + bytes > KEY_BYTES || tenant + bytes > TENANT_BYTES) return false;
      if (held.total + bytes > TOTAL_BYTES) return false;
      change(bytes);
      return true;
    },
    give(bytes) {
      if (!hasEnded) change(-bytes);
    },
    leave() {
      hasEnded = true;
      change(-own);
    },
  };
}
