/**
 * Finds the memories that pass a filter. Search by words (`word-index/`) and by vectors knows no filter except the
 * user. `firstPassing` applies the filter to what they found, best first, so that a memory outside the filter neither
 * shows nor takes the position of one inside; callers search on if too few are left. CROSS JOIN fixes the order of the
 * joins.
 */
import type { MemoryFilter } from '../types.ts';
import { IS_SHOWN } from './document-generations.ts';
import type { CompiledFilter } from './filter.ts';
import type { Store } from './open-store.ts';
import { hasWorkEnded, readUntilWorkEnds } from './work-budget.ts';

/** Tells whether a filter asks for anything beside users; a field that is undefined asks for nothing. */
export function isNarrowing(filter: MemoryFilter): boolean {
  return Object.entries(filter).some(([name, value]) => name !== 'userIds' && value !== undefined);
}

/** Lists the `limit` lowest numbers of memories that pass, ascending: those before the work budget ends. */
export function listPassing(store: Store, filter: CompiledFilter, limit: number): number[] {
  return listPassingWithin(store, filter, { limit }).rows;
}

/**
 * Lists numbers as `listPassing` does, with at most `share` (0..1) of the work that is left, and says whether more may
 * pass that were not looked at.
 */
export function listPassingWithin(
  store: Store,
  filter: CompiledFilter,
  { limit, share }: { readonly limit: number; readonly share?: number },
): { readonly rows: number[]; readonly isCut: boolean } {
  const statement = store
    .prepare(
      `SELECT m.seq FROM memories m CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE ${filter.sql} ORDER BY m.seq LIMIT ?`,
    )
    .pluck();
  const parameters = [...filter.parameters, limit];
  // To read rows one by one takes longer, so it is done only where the statement may have to be left.
  if (!filter.countsWork) return { rows: statement.all(...parameters) as number[], isCut: false };
  return readUntilWorkEnds(() => statement.iterate(...parameters) as IterableIterator<number>, share);
}

/** Lists those of the given memories that pass, in no order. */
export function listPassingOf(store: Store, filter: CompiledFilter, memoryNos: readonly number[]): number[] {
  if (memoryNos.length === 0) return [];
  return store
    .prepare(
      `SELECT m.seq FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value
         CROSS JOIN memory_dynamics d ON d.seq = m.seq WHERE ${filter.sql}`,
    )
    .pluck()
    .all(JSON.stringify(memoryNos), ...filter.parameters) as number[];
}

/** Lists those of the ids whose memories pass and are shown: no parts of hidden documents, nothing that has expired. */
export function listPassingIds(store: Store, filter: CompiledFilter, ids: readonly string[], now: number): string[] {
  if (ids.length === 0) return [];
  return store
    .prepare(
      `SELECT m.id FROM json_each(?) AS wanted CROSS JOIN memories m ON m.id = wanted.value
         CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE (m.expires_at IS NULL OR m.expires_at > ?) AND ${IS_SHOWN} AND ${filter.sql}`,
    )
    .pluck()
    .all(JSON.stringify(ids), now, ...filter.parameters) as string[];
}

/**
 * Factor by which a batch after the first exceeds what it should take for the rest, by the share that passed so far. A
 * further batch costs as much as looking some three memories up.
 */
const SPARE = 1.5;
/** Most items of a batch for each item of the batch in front of it. */
const GROWTH = 4;

/**
 * Returns the first `limit` items of a list whose memories pass the filter, in the order of the list. Mostly all pass,
 * so no more than `limit` memories are looked up at first.
 */
export function firstPassing<T extends { readonly memoryNo: number }>(
  store: Store,
  filter: CompiledFilter,
  inOrder: readonly T[],
  limit: number,
): T[] {
  const passed: T[] = [];
  for (let at = 0, count = limit; at < inOrder.length && passed.length < limit && !hasWorkEnded();) {
    const batch = inOrder.slice(at, at + count);
    const memoryNos = batch.map(({ memoryNo }) => memoryNo);
    const passing = new Set(listPassingOf(store, filter, memoryNos));
    passed.push(...batch.filter(({ memoryNo }) => passing.has(memoryNo)));
    at += count;
    const share = Math.max(1, passed.length) / at;
    count = Math.min(GROWTH * count, Math.ceil((SPARE * (limit - passed.length)) / share));
  }
  return passed.slice(0, limit);
}
