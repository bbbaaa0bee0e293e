/** Measures what an add or an import makes one commit do beside its own memories. */

import { walkedRows } from '../store/chains.ts';
import type { Store } from '../store/open-store.ts';
import { contentBytes } from '../store/text-sizes.ts';

/**
 * Memories whose words have to be written anew, since memories came before them in their session. Many new memories may
 * come before the same two, whose words are then written once.
 */
export interface ReindexQueue {
  readonly memoryNos: Set<number>;
  /** Bytes of their texts, and `MOVED_BYTES` for each memory that a supersession has moved to another chain. */
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

/**
 * Number of bytes in its `ReindexQueue`, or of walks along chains, from which an add takes no further item, and an
 * import no further line. It is that of 8 MiB of superseded memories.
 */
export const MAX_REINDEXED_BYTES = 1024 * 1024;

/** Adds memories to those whose words have to be written anew. */
export function enqueueReindex(store: Store, toReindex: ReindexQueue, memoryNos: readonly number[]): void {
  const added = memoryNos.filter((memoryNo) => !toReindex.memoryNos.has(memoryNo));
  if (added.length === 0) return;
  for (const memoryNo of added) toReindex.memoryNos.add(memoryNo);
  for (const bytes of contentBytes(store, added).values()) toReindex.bytes += bytes;
}
