import { findItemRow } from '../commands/items.ts';
import { findMemoryNos, listActive } from '../store/memories.ts';
import { lastMemory } from '../store/memory-counts.ts';
import type { Store } from '../store/open-store.ts';
import { listReflectionsOn } from '../store/reflections.ts';
import type { ItemPlace } from '../types.ts';
import type { ReadContext } from './read-context.ts';

/** A memory, named by its id, by its number, or by its place as an item. */
export type SourceName = { readonly id: string } | { readonly memoryNo: number } | { readonly place: ItemPlace };

/**
 * Lists the numbers of all active reflections that are derived from a memory, directly or through other reflections; of
 * an unknown memory there are none. `newest` is the highest number of a memory of the file, so that later reflections
 * can be told from these.
 */
export function listActiveReflections(
  { open }: ReadContext,
  source: SourceName,
): { readonly memoryNos: readonly number[]; readonly newest: number } {
  const { store } = open();
  return store.read(() => {
    const memoryNo = numberOf(store, source);
    const found = memoryNo === undefined ? [] : listReflectionsOn(store, [memoryNo]);
    return { memoryNos: listActive(store, found, found.length), newest: lastMemory(store) };
  });
}

function numberOf(store: Store, source: SourceName): number | undefined {
  if ('memoryNo' in source) return source.memoryNo;
  if ('place' in source) return findItemRow(store, source.place)?.memoryNo;
  return findMemoryNos(store, [source.id]).get(source.id);
}
