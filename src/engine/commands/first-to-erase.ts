/** Chooses which of the memories that are about to be erased one commit erases. */

import type { Store } from '../store/open-store.ts';
import { readReflectionsOn } from '../store/reflections.ts';
import { withinBytes } from '../store/text-sizes.ts';

/** Greatest number of links to reflections on memories that one write of a delete reads at once. */
const MAX_RESTING = 1_000;
/** Greatest number of times that one write of a delete looks for reflections on the reflections that it has chosen. */
const MAX_LOOKS = 100;

/**
 * Chooses the memories that one commit erases: the given ones after all reflections on them, if there are few of these;
 * otherwise some of the reflections. Erasing a memory erases all reflections on it, so those are chosen on which no
 * other one rests.
 * @param memoryNos `memoryNo` of each memory that is to be erased
 * @param bounds.most greatest number of reflections that are chosen to go first
 * @param bounds.bytes greatest size of their texts, values and metadata together, if it is more than one
 */
export function firstToErase(
  store: Store,
  memoryNos: readonly number[],
  { most, bytes }: { readonly most: number; readonly bytes: number },
): readonly number[] {
  let chosen = memoryNos;
  for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
    const { memoryNos: found, isCut } = readReflectionsOn(store, chosen, { broadest: MAX_RESTING });
    const known = new Set(chosen);
    // The last ones rest on those before them.
    const resting = found.filter((memoryNo) => !known.has(memoryNo)).reverse();
    const few = withinBytes(store, resting.slice(0, most), bytes);
    if (!isCut && few.length === resting.length) return [...few, ...chosen];
    if (few.length === 0 && chosen.length < 2) return chosen;
    // Those that have over 1,000 links among themselves are chosen in parts.
    chosen = few.length > 0 ? few : chosen.slice(chosen.length / 2);
  }
  return chosen;
}
