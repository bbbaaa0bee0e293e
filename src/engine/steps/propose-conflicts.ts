import { contradictionOf, DEFAULT_WEIGHTS } from '../commands/relate.ts';
import { conflict, hasPlainForm } from '../reasoning/conflict-forms.ts';
import { isReady } from '../store/dynamics.ts';
import { putConcludedEdge } from '../store/edges.ts';
import { compileFilter } from '../store/filter.ts';
import { type MemoryRow, readMemoryRows } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { isReflection } from '../store/reflections.ts';
import { unchangedOf } from './shown-memories.ts';

/** A memory, and memories near it that contradict it by the form of their texts. */
export interface Proposed {
  readonly own: MemoryRow;
  readonly others: readonly MemoryRow[];
}

/**
 * Finds memories near a new or changed one that contradict it by the form of their texts. Only memories that are active
 * and valid now are compared, and only those that callers wrote as plain memories: no chunks of documents, no
 * reflections, and no items (memories that are stored by a key in a namespace). A memory that is only linked again is
 * skipped, so that a proposal that somebody has dismissed does not come back.
 * @param near `memoryNo` of each near memory of the same user, at most a dozen
 * @returns null if there are none
 */
export function findProposed(store: Store, memoryNo: number, near: readonly number[], now: number): Proposed | null {
  if (near.length === 0 || isReady(store, memoryNo)) return null;
  const [own] = readMemoryRows(store, [memoryNo]);
  if (own === undefined || !isSaid(store, own) || !hasPlainForm(own.content)) return null;
  const passing = new Set(listPassingOf(store, compileFilter({}, now), [memoryNo, ...near]));
  if (!passing.has(memoryNo)) return null;
  const others = readMemoryRows(store, [...near]).filter(
    (other) => passing.has(other.memoryNo) && isSaid(store, other) && conflict(own.content, other.content),
  );
  return others.length === 0 ? null : { own, others };
}

/**
 * Links a memory to the memories that contradict it, as a proposal without a winner. Memories that were hidden or
 * changed since they were compared are left out. Call it inside a write transaction.
 */
export function putProposed(store: Store, { own, others }: Proposed, now: number): void {
  const unchanged = unchangedOf(store, [own, ...others], now);
  if (!unchanged.has(own.memoryNo)) return;
  for (const other of others) {
    if (!unchanged.has(other.memoryNo)) continue;
    putConcludedEdge(
      store,
      contradictionOf(own, other),
      { similarity: null, weight: DEFAULT_WEIGHTS.contradicts },
      now,
    );
  }
}

function isSaid(store: Store, row: MemoryRow): boolean {
  return row.generation_no === null && row.namespace === null && !isReflection(store, row.memoryNo);
}
