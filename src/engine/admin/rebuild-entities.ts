import type { EntityMode } from '../entities/modes.ts';
import { entitiesFromPatterns } from '../steps/extract-entities.ts';
import { clearEntities, putEntities } from '../store/entities.ts';
import { readMemoryRows } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { seqsAfter } from './rebuild-text.ts';

/**
 * Makes the graph of names again from the memories, in short writes: by patterns, whoever made it before, and with the
 * types of the mode that is set now.
 * @param mode null leaves the graph empty
 * @param onProgress told after each slice how many memories are done
 */
export function rebuildEntities(
  store: Store,
  mode: EntityMode | null,
  onProgress: (done: number) => void = () => {},
): void {
  store.write(() => clearEntities(store));
  if (mode === null) return;
  let done = 0;
  for (let seqs = seqsAfter(store, 0); seqs.length > 0; seqs = seqsAfter(store, seqs.at(-1)!)) {
    store.write(() => {
      for (const row of readMemoryRows(store, seqs)) {
        putEntities(store, { memory: row.seq, userNo: row.user_no }, entitiesFromPatterns(row, mode));
      }
    });
    onProgress((done += seqs.length));
  }
}
