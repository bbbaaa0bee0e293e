/** Chooses which of the memories that are about to be erased one commit erases. */

import { readMemoryRows } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { readReflectionsOn } from '../store/reflections.ts';
import { successorsOfEach } from '../store/session-context.ts';
import { contentBytes, withinBytes } from '../store/text-sizes.ts';

/** Greatest number of links to reflections on memories that one write of a delete reads at once. */
const MAX_RESTING = 1_000;
/** Greatest number of times that one write of a delete looks for reflections on the reflections that it has chosen. */
const MAX_LOOKS = 100;

/**
 * Chooses the memories that one commit erases: the given ones after all reflections on them, if there are few of these;
 * otherwise only some of the reflections, or only the later half of the given memories (or half of that, and so on) if
 * these have too many links. Erasing a memory erases all reflections on it, so reflections are chosen on which no other
 * one rests.
 * @param memoryNos `memoryNo` of each memory that is to be erased
 * @param bounds.most greatest number of reflections that are chosen to go first
 * @param bounds.bytes greatest size (bytes) of their texts, values and metadata together, unless a single one has more
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

/**
 * Greatest number of bytes of the texts that one write indexes anew since memories before them in their session are
 * erased, unless a single one needs more.
 */
const REINDEXED_BYTES = 1024 * 1024;

/**
 * Cuts a list of memories that are about to be erased, so that one commit indexes little text anew. When a memory goes,
 * the memories that follow it in its session are indexed again. Returns the longest beginning of the list whose
 * followers have at most 1 MiB of text together, and at least one memory.
 */
export function withinFollowers(store: Store, memoryNos: readonly number[]): readonly number[] {
  if (memoryNos.length < 2) return memoryNos;
  const going = new Set(memoryNos);
  const followers = successorsOfEach(store, readMemoryRows(store, memoryNos));
  const staying = new Set([...followers.values()].flat().filter((memoryNo) => !going.has(memoryNo)));
  const bytesOf = contentBytes(store, [...staying]);
  let left = REINDEXED_BYTES;
  const beyond = memoryNos.findIndex((memoryNo, place) => {
    for (const follower of followers.get(memoryNo) ?? []) {
      left -= bytesOf.get(follower) ?? 0;
      bytesOf.delete(follower);
    }
    return place > 0 && left < 0;
  });
  return beyond === -1 ? memoryNos : memoryNos.slice(0, beyond);
}
