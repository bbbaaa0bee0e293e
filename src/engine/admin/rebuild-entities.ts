import type { EntityMode } from '../entities/modes.ts';
import { entitiesFromPatterns } from '../steps/extract-entities.ts';
import { clearEntities } from '../store/entities.ts';
import { putEntities } from '../store/put-entities.ts';
import { readMemoryRows } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { memoryNosAfter } from './rebuild-text.ts';

/**
 * Removes the entity graph and makes it again from the memories, in short writes. It uses patterns, even if a language
 * model made the graph. If it is interrupted, the entities of the remaining memories are missing until it is run again.
 * @param mode types of entities and relations; null leaves the graph empty
 * @param onProgress called after each slice with the number of memories done so far
 */
export function rebuildEntities(
  store: Store,
  mode: EntityMode | null,
  onProgress: (done: number) => void = () => {},
): void {
  store.write(() => clearEntities(store));
  if (mode === null) return;
  let done = 0;
  for (
    let memoryNos = memoryNosAfter(store, 0);
    memoryNos.length > 0;
    memoryNos = memoryNosAfter(store, memoryNos.at(-1)!)
  ) {
    store.write(() => {
      const rows = readMemoryRows(store, memoryNos);
      putEntities(
        store,
        rows.map((row) => ({
          ...{ memoryNo: row.memoryNo, userNo: row.user_no },
          graph: entitiesFromPatterns(row, mode),
        })),
      );
    });
    onProgress((done += memoryNos.length));
  }
}
