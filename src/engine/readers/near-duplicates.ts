import { readMemories, withinBytes } from '../store/memories.ts';
import { listNearDuplicateNos } from '../store/near-duplicates.ts';
import { createWorkBudget, runWithin } from '../store/work-budget.ts';
import type { NearDuplicates } from '../types.ts';
import type { ReadContext } from './read-context.ts';
import { workLimits } from './work-limits.ts';

/** Most text of one list in bytes; the pairs beyond it are left out. */
const LIST_BYTES = 4 * 1024 * 1024;

/** Lists pairs of memories that say nearly the same; one that has expired is left out with its pair. */
export function readNearDuplicates(
  { open, clock, config }: ReadContext,
  asked: { readonly userId: string | undefined; readonly leastSimilarity: number; readonly limit: number },
): NearDuplicates {
  const { store } = open();
  return runWithin(createWorkBudget(workLimits(config)), () =>
    store.read(() => {
      const { pairs, isCut } = listNearDuplicateNos(store, asked);
      const now = clock.now();
      const numbers = [...new Set(pairs.flatMap(({ earlier, later }) => [earlier, later]))];
      const taken = withinBytes(store, numbers, LIST_BYTES);
      const memories = readMemories(store, taken, now);
      const items = pairs.flatMap(({ earlier, later, similarity }) => {
        const [first, second] = [memories.get(earlier), memories.get(later)];
        return first === undefined || second === undefined ? [] : [{ earlier: first, later: second, similarity }];
      });
      return { items, isCut: isCut || taken.length < numbers.length };
    }),
  );
}
