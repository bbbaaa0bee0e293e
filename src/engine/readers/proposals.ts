import { listProposed } from '../store/contradictions.ts';
import type { Proposal } from '../types.ts';
import { readPairs } from './memory-pairs.ts';
import type { ReadContext } from './read-context.ts';

/** Lists proposed contradictions, the latest first. */
export function readProposals(
  { open, clock }: ReadContext,
  { userId, limit }: { readonly userId: string | undefined; readonly limit: number },
): Proposal[] {
  const { store } = open();
  return store.read(() => readPairs(store, listProposed(store, userId, limit), clock.now()).items);
}
