/** Chooses which of the memories that are about to be erased one commit erases. */

import type { Store } from '../store/open-store.ts';
import { drawFromOthers, type DrawnFrom, listDrawnFrom } from '../store/reflections.ts';
import { withinBytes } from '../store/text-sizes.ts';
import { DEFAULT_WEIGHTS } from './relate.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Greatest number of steps from the memories that are to be erased in which one write looks for reflections, each on
 * those of the step before. A step takes a statement, which is a round trip in PostgreSQL.
 */
const MAX_STEPS = 50;
/** Greatest number of reflections that one write draws from other sources; each takes some 10 µs. */
const MAX_DRAWN = 1_000;

/**
 * Chooses the memories that one commit erases: the given ones after all reflections on them, if there are few of these;
 * otherwise some of the reflections, the nearest ones. Erasing a memory erases all reflections on it, so what rests on
 * the chosen ones is drawn from the given ones instead, whose number of steps no commit has to walk again. Call it
 * inside a write.
 * @param memoryNos `memoryNo` of each memory that is to be erased
 * @param bounds.most greatest number of reflections that are chosen to go first
 * @param bounds.bytes greatest size of their texts, values and metadata together, if it is more than one
 * @returns what rests on others before these; empty if over 1,000 reflections rest on the nearest ones, of which this
 *   commit has drawn the first from the given ones
 */
export function firstToErase(
  { store, now }: Pick<WriteContext, 'store' | 'now'>,
  memoryNos: readonly number[],
  { most, bytes }: { readonly most: number; readonly bytes: number },
): readonly number[] {
  const { resting, rootOf, isAll } = nearestResting(store, memoryNos, most);
  const few = withinBytes(store, resting.slice(0, most), bytes);
  if (isAll && few.length === resting.length) return [...few.reverse(), ...memoryNos];
  const beyond = listDrawnFrom(store, few, { except: few, limit: MAX_DRAWN });
  const weight = DEFAULT_WEIGHTS.derived_from;
  // One of the given memories may rest on a reflection, too. It is not to go with that one, and needs no other source.
  const given = new Set(memoryNos);
  const sourceOf = (link: DrawnFrom) => (given.has(link.memory) ? null : rootOf.get(link.source)!);
  drawFromOthers(store, beyond, sourceOf, { weight, now });
  return beyond.length < MAX_DRAWN ? few.reverse() : [];
}

/** Reflections on memories, with the memory of these that each was reached from. */
interface Resting {
  /** Numbers of the reflections, the nearest first. */
  readonly resting: readonly number[];
  /** The memory from which a reflection was reached, by the numbers of both. */
  readonly rootOf: ReadonlyMap<number, number>;
  /** Whether there are no further reflections. */
  readonly isAll: boolean;
}

/** Finds the reflections that are nearest to these memories, some more than `most` if there are as many. */
function nearestResting(store: Store, memoryNos: readonly number[], most: number): Resting {
  const rootOf = new Map(memoryNos.map((memoryNo) => [memoryNo, memoryNo]));
  const resting: number[] = [];
  let last = memoryNos;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const limit = most + 1 - resting.length;
    const links = listDrawnFrom(store, last, { except: [...rootOf.keys()], limit });
    const next = new Map(links.map(({ memory, source }) => [memory, rootOf.get(source)!]));
    for (const [memory, root] of next) rootOf.set(memory, root);
    last = [...next.keys()];
    resting.push(...last);
    if (last.length === 0) return { resting, rootOf, isAll: true };
    if (links.length === limit) break;
  }
  return { resting, rootOf, isAll: false };
}
