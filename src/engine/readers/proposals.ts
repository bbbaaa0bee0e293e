import { listProposed } from '../store/contradictions.ts';
import { readMemories, withinBytes } from '../store/memories.ts';
import type { Proposal } from '../types.ts';
import type { ReadContext } from './read-context.ts';

/** Most text of one list in bytes; the proposals beyond it are left out. */
const LIST_BYTES = 4 * 1024 * 1024;

/** Lists proposed contradictions, the latest first; one whose memory has expired is left out. */
export function readProposals(
  { open, clock }: ReadContext,
  { userId, limit }: { readonly userId: string | undefined; readonly limit: number },
): Proposal[] {
  const { store } = open();
  const now = clock.now();
  return store.read(() => {
    const proposed = listProposed(store, userId, limit);
    const numbers = [...new Set(proposed.flatMap(({ earlier, later }) => [earlier, later]))];
    const memories = readMemories(store, withinBytes(store, numbers, LIST_BYTES), now);
    return proposed.flatMap(({ earlier, later, ...proposal }) => {
      const [first, second] = [memories.get(earlier), memories.get(later)];
      if (first === undefined || second === undefined) return [];
      const haveExpired = [first, second].some(({ expiresAt }) => expiresAt !== null && expiresAt <= now);
      return haveExpired ? [] : [{ earlier: first, later: second, ...proposal }];
    });
  });
}
