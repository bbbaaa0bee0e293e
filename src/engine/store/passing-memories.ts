/**
 * Finds the memories that pass a filter. The searches by words (`word-index/`) and by vectors can filter by user only.
 * `firstPassing` therefore applies the filter to their results, best first, so that a memory that fails neither appears
 * nor takes the place of one that passes; callers search further if too few are left. CROSS JOIN fixes the order of the
 * joins.
 */

import type { MemoryFilter } from '../types.ts';
import { IS_SHOWN } from './document-generations.ts';
import type { CompiledFilter } from './filter.ts';
import type { Store } from './open-store.ts';
import { hasWorkEnded, readUntilWorkEnds } from './work-budget.ts';

/** Tells whether a filter has any condition other than users; an undefined field is no condition. */
export function isNarrowing(filter: MemoryFilter): boolean {
  return Object.entries(filter).some(([name, value]) => name !== 'userIds' && value !== undefined);
}

/**
 * Lists the lowest numbers of memories that pass a filter, ascending, at most `limit`. It stops when the work budget is
 * used up.
 */
export function listPassing(store: Store, filter: CompiledFilter, limit: number): number[] {
  return listPassingWithin(store, filter, { limit }).rows;
}

/**
 * Lists numbers as `listPassing` does, but uses at most `share` (0..1) of the remaining work budget. `isCut` tells
 * whether the budget ended the list; it is false if `limit` did.
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

/**
 * Lists those of the given memories that pass a filter, in no certain order. If the filter parses anything
 * (`countsWork`), memories are missing that are examined after the work budget is used up (`hasWorkEnded`).
 */
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

/**
 * Judges memories by a filter, each once, however often it is given. Returns the numbers of all that were ever found to
 * pass. Memories that are given after the end of the work budget do not pass.
 */
export type Judge = (memoryNos: readonly number[]) => ReadonlySet<number>;

/** Number of memories that a statement judges if its filter parses nothing. */
const JUDGED_AT_ONCE = 2_000;

/**
 * Makes a `Judge` for one request.
 * @param known numbers of memories that are known to pass
 */
export function createJudge(store: Store, filter: CompiledFilter, known: readonly number[] = []): Judge {
  const passing = new Set(known);
  const judged = new Set(known);
  const atOnce = filter.countsWork ? parsedAtOnce(store) : JUDGED_AT_ONCE;
  return (memoryNos) => {
    const unknown = [...new Set(memoryNos)].filter((memoryNo) => !judged.has(memoryNo));
    for (let at = 0; at < unknown.length && !hasWorkEnded(); at += atOnce) {
      const piece = unknown.slice(at, at + atOnce);
      for (const memoryNo of piece) judged.add(memoryNo);
      for (const memoryNo of listPassingOf(store, filter, piece)) passing.add(memoryNo);
    }
    return passing;
  };
}

/**
 * Lists those of the ids whose memories pass a filter, have not expired at `now` (Unix ms), and are not parts of
 * documents that queries do not find. When the work budget is used up, ids may be missing as in `listPassingOf`.
 */
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

/** Number of memories in the first piece of `firstPassingWithin`. */
const FIRST_PIECE = 8;
/** Factor by which each piece of `firstPassingWithin` is larger than the one before it. */
const PIECE_GROWTH = 4;
/**
 * Greatest number of memories in a piece of `firstPassingWithin`. As memories differ in size, a large piece could take
 * many times as long as all before it.
 */
const MAX_PIECE = 200;
/** Time (ms) after which `firstPassingWithin` begins no further piece. */
const PIECES_MS = 500;

/**
 * Returns what `firstPassing` returns, but takes about a second at most: if the filter parses tags, metadata or
 * values, which in PostgreSQL takes up to milliseconds for a memory, it may look at the beginning of the list only.
 * `looked` is that beginning; it is empty only for an empty list.
 * @param now returns a time in ms that never goes back
 */
export function firstPassingWithin<T extends { readonly memoryNo: number }>(
  store: Store,
  filter: CompiledFilter,
  inOrder: readonly T[],
  limit: number,
  now: () => number = () => performance.now(),
): { readonly looked: readonly T[]; readonly passing: T[] } {
  if (!filter.countsWork) return { looked: inOrder, passing: firstPassing(store, filter, inOrder, limit) };
  const end = now() + PIECES_MS;
  const passing: T[] = [];
  let at = 0;
  for (let size = FIRST_PIECE; at < inOrder.length && passing.length < limit; size *= PIECE_GROWTH) {
    if (at > 0 && now() > end) break;
    const piece = inOrder.slice(at, at + Math.min(size, MAX_PIECE));
    passing.push(...firstPassing(store, filter, piece, piece.length));
    at += piece.length;
  }
  return { looked: inOrder.slice(0, at), passing: passing.slice(0, limit) };
}

/**
 * Greatest number of memories whose tags, metadata or values one statement parses. PostgreSQL takes up to a hundred
 * times as long for it as a file.
 */
export const parsedAtOnce = ({ words }: Store): number => (words === null ? 2_000 : 200);

/**
 * Factor on the size of each batch after the first. The share of memories that passed so far gives the batch size that
 * is expected to suffice. It is multiplied by this factor, since a further batch costs as much as looking up three
 * memories.
 */
const SPARE = 1.5;
/** Greatest ratio between the size of a batch and that of the batch before it. */
const GROWTH = 4;

/**
 * Returns the first `limit` items of a list whose memories pass the filter, in the order of the list. It stops when the
 * work budget is used up. As usually all pass, no more than `limit` memories are looked up at first.
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
