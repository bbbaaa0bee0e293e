/** Measures what an add or an import makes one commit do beside its own memories. */

import { walkedRows } from '../store/chains.ts';
import type { Store } from '../store/open-store.ts';
import { indexingWork } from '../store/text-sizes.ts';

/**
 * Memories whose words have to be written anew, since memories came before them in their session. Many new memories may
 * come before one memory, whose words are then written once.
 */
export interface ReindexQueue {
  readonly memoryNos: Set<number>;
  /**
   * Work that their texts make for the word index (`indexingWork`), and `MOVED_BYTES` for each memory that a
   * supersession has moved to another chain.
   */
  bytes: number;
  /** Sum of `settlingBytes` of the memories that got another status. */
  settled: number;
}

/** Number of bytes to index for which a memory counts that is moved to another chain; both take some 20 µs. */
export const MOVED_BYTES = 256;

/** Number of bytes to index that take as long as a step along a chain, of which a link may need a thousand. */
const STEP_BYTES = 32;

/** Returns the number of bytes to index that take as long as the walks along chains of the present write. */
export const walkedBytes = (store: Store): number => STEP_BYTES * walkedRows(store);

/** Adds memories to those whose words have to be written anew, each once, with the work for its text. */
export function enqueueReindex(store: Store, toReindex: ReindexQueue, memoryNos: readonly number[]): void {
  const added = memoryNos.filter((memoryNo) => !toReindex.memoryNos.has(memoryNo));
  if (added.length === 0) return;
  for (const memoryNo of added) toReindex.memoryNos.add(memoryNo);
  for (const work of indexingWork(store, added).values()) toReindex.bytes += work;
}
