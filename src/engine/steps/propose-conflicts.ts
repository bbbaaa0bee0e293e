import { contradictionOf, DEFAULT_WEIGHTS } from '../commands/relate.ts';
import { conflict, hasPlainForm } from '../reasoning/conflict-forms.ts';
import { listUnlinkedTexts } from '../store/dynamics.ts';
import { putConcludedEdge } from '../store/edges.ts';
import { compileFilter } from '../store/filter.ts';
import { type MemoryRow, readMemoryRows } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { prefetchReflections } from '../store/prefetch.ts';
import { isReflection } from '../store/reflections.ts';
import { unchangedOf } from './shown-memories.ts';

/** A memory, and memories near it that contradict it by the form of their texts. */
export interface Proposed {
  readonly own: MemoryRow;
  readonly others: readonly MemoryRow[];
}

/**
 * The number of a memory that is being linked, and those of the memories of its user that it was compared with, at most
 * a dozen.
 */
interface Compared {
  readonly memoryNo: number;
  readonly compared: readonly number[];
}

/**
 * Finds memories near new or changed ones that contradict them by the form of their texts. Only memories that are
 * active and valid now are compared, and only those that callers wrote as plain memories: no chunks of documents, none
 * that were made of other memories (`isReflection`), and no items (memories that are stored by a key in a namespace). A
 * memory that is only linked again is skipped, so that a proposal that somebody has dismissed does not come back.
 * @returns one entry for each of `searched`, in order; null if nothing near the memory contradicts it, or if it is
 *   skipped
 */
export function findProposed(store: Store, searched: readonly Compared[], now: number): (Proposed | null)[] {
  const plain = findPlain(
    store,
    searched.flatMap(({ memoryNo, compared }) => (compared.length > 0 ? [memoryNo] : [])),
  );
  const findOthers = searched.map(({ memoryNo, compared }) => () => {
    const own = plain.get(memoryNo);
    return own === undefined || !isSaid(store, own) ? [] : conflictingAmong(store, own, compared, now);
  });
  // The first question is which memories pass, and the second one is for the texts near those that do.
  for (let question = 0; question < 2 && plain.size > 0 && store.ahead !== null; question += 1) {
    store.ahead.readSpeculatively(...findOthers);
    store.ahead.send();
  }
  return searched.map(({ memoryNo }, place) => {
    const others = findOthers[place]!();
    return others.length === 0 ? null : { own: plain.get(memoryNo)!, others };
  });
}

/** Finds those of the memories that are not linked yet and whose texts have a form that another text may contradict. */
function findPlain(store: Store, memoryNos: readonly number[]): ReadonlyMap<number, MemoryRow> {
  const plain = listUnlinkedTexts(store, memoryNos)
    .filter(({ content }) => hasPlainForm(content))
    .map(({ memoryNo }) => memoryNo);
  prefetchReflections(store, plain);
  return new Map(readMemoryRows(store, plain).map((row) => [row.memoryNo, row]));
}

/**
 * Lists the memories of `near` that contradict `own` by the form of their texts. It leaves out memories that are not
 * active or not valid now, and those that are not plain (`isSaid`). If `own` is not active or not valid now, the list
 * is empty.
 */
function conflictingAmong(store: Store, own: MemoryRow, near: readonly number[], now: number): MemoryRow[] {
  const passing = new Set(listPassingOf(store, compileFilter({}, now), [own.memoryNo, ...near]));
  if (!passing.has(own.memoryNo)) return [];
  prefetchReflections(store, passing);
  return readMemoryRows(store, [...near]).filter(
    (other) => passing.has(other.memoryNo) && conflict(own.content, other.content) && isSaid(store, other),
  );
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

/**
 * Tells whether a memory is plain, as callers write them: no chunk of a document, no item, and not made of other
 * memories (`isReflection`).
 */
function isSaid(store: Store, row: MemoryRow): boolean {
  return row.generation_no === null && row.namespace === null && !isReflection(store, row.memoryNo);
}
