import type { Store } from '../store/open-store.ts';
import { indexingWork } from '../store/text-sizes.ts';
import { reindexOrWait } from '../store/word-index/waiting-contexts.ts';

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

/** Adds memories to those whose words have to be written anew, each once, with the work for its text. */
export function enqueueReindex(store: Store, toReindex: ReindexQueue, memoryNos: readonly number[]): void {
  const added = memoryNos.filter((memoryNo) => !toReindex.memoryNos.has(memoryNo));
  if (added.length === 0) return;
  for (const memoryNo of added) toReindex.memoryNos.add(memoryNo);
  for (const work of indexingWork(store, added).values()) toReindex.bytes += work;
}

/**
 * Writes the words of the memories of a queue anew, as far as there is room in the commit.
 * @returns whether some of them wait for another commit
 */
export function reindexFollowers(store: Store, { memoryNos, bytes, settled }: ReindexQueue): boolean {
  const followers = [...memoryNos];
  // Their own work counts when it is done.
  const own = [...indexingWork(store, followers).values()].reduce((sum, work) => sum + work, 0);
  return reindexOrWait(store, followers, bytes + settled - own);
}
