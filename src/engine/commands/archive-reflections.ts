/** Archives the reflections drawn from a memory whose text changes, ahead of the change. */

import { listActive, readMemoryRows } from '../store/memories.ts';
import { readNewReflectionsOn, readReflectionsOn } from '../store/reflections.ts';
import { ARCHIVED_BYTES, replaceMemory } from '../store/revisions.ts';
import { withinBytes } from '../store/text-sizes.ts';
import type { WriteContext } from './write-context.ts';

/** Greatest number of reflections that one commit archives; one takes some 100 µs. */
export const MAX_ARCHIVED = 100;
/**
 * Where one commit gives up its search for reflections: `broadest` links read of memories that are equally far from the
 * source, or `deepest` links away from it. A link takes some microseconds, and so does each further distance.
 */
const BOUNDS = { broadest: 1_000, deepest: 10 };

/**
 * Answer of a write that cannot be done before the reflections on its memory are archived, because they are too many
 * for one commit to find. The caller finds and archives them with `listActiveReflections` and `archiveReflections`, and
 * writes again.
 */
export type ManyReflections = 'many reflections';

/**
 * Archives active reflections drawn from a memory whose text is about to change, at most 100, with at most 2 MiB of
 * texts and values together or a single one. A user can make them active again. Call it inside a write transaction.
 * @param archivedTo highest number of a memory when the caller listed and archived all reflections on this memory;
 *   undefined if it did not
 * @returns `done` if none is left. After `begun`, when some may be left, the caller commits and calls again; after
 *   `many reflections`, with nothing archived, once it has archived them itself
 */
export function archiveReflectionsOn(
  context: WriteContext,
  source: number,
  archivedTo: number | undefined,
): 'done' | 'begun' | ManyReflections {
  const { store } = context;
  const { memoryNos, isCut } =
    archivedTo === undefined
      ? readReflectionsOn(store, [source], BOUNDS)
      : readNewReflectionsOn(store, source, { ...BOUNDS, after: archivedTo });
  if (isCut) return 'many reflections';
  const reflections = listActive(store, memoryNos, MAX_ARCHIVED);
  const isAll = archiveReflections(context, { memoryNos: reflections });
  return isAll && reflections.length < MAX_ARCHIVED ? 'done' : 'begun';
}

/**
 * Archives those of these memories that are active, the first ones with at most 2 MiB of texts and values together, or
 * one. Call it inside a write transaction, with 100 memories at most.
 * @returns whether none of them is active any more; otherwise the caller calls again
 */
export function archiveReflections(
  { store, now }: WriteContext,
  { memoryNos }: { readonly memoryNos: readonly number[] },
): boolean {
  const active = listActive(store, memoryNos, memoryNos.length);
  const taken = withinBytes(store, active, ARCHIVED_BYTES);
  const archived = { columns: {}, status: 'archived', byLink: true, now } as const;
  for (const row of readMemoryRows(store, taken)) replaceMemory(store, row, archived);
  return taken.length === active.length;
}
