/** Keeps the index of standing queries that a reader compares with memories, by what changed since the last read. */

import { createStandingIndex, type StandingIndex } from '../retrieve/standing-index.ts';
import type { Store } from '../store/open-store.ts';
import { listQueryNos, readComparedQueries, replacedTexts, standingVersion } from '../store/standing.ts';

/** Number of characters of queries and filters after which one read indexes no more queries: some 0.1 s. */
const INDEXED_CHARACTERS = 80_000;
/** Number of queries that one statement reads. */
const READ_AT_ONCE = 32;

/** The index of the queries, as a connection saw them last. */
interface KnownIndex {
  readonly index: StandingIndex;
  /** `standingVersion` of the queries when all of them were indexed; null if some were left for the next read. */
  version: string | null;
  /**
   * Value of `replacedTexts` when the indexed texts were last compared with the stored ones. While it is equal, no
   * stored text was replaced.
   */
  replaced: string;
}

/** Cache of indexes by the connection on which the queries were read. */
const known = new WeakMap<Store, KnownIndex>();

/**
 * Returns the index of all queries. Queries that were added, deleted or whose text was replaced since the last time are
 * changed in it, and the others stay. It must be called inside a read.
 * @param inSteps whether it may leave queries for the next call
 * @returns `isWhole` is false if so many queries were new that the next call has to go on
 */
export function indexOf(store: Store, inSteps: boolean): { readonly index: StandingIndex; readonly isWhole: boolean } {
  const version = standingVersion(store);
  let state = known.get(store);
  if (state?.version === version) return { index: state.index, isWhole: true };
  state ??= { index: createStandingIndex(), version: null, replaced: replacedTexts(store) };
  known.set(store, state);
  const { index } = state;
  // If this fails in between, the next call goes on.
  state.version = null;
  const queryNos = listQueryNos(store);
  const stored = new Set(queryNos);
  index.remove([...index.queries.keys()].filter((queryNo) => !stored.has(queryNo)));
  const replaced = replacedTexts(store);
  if (state.replaced !== replaced) index.remove(listReplaced(store, index));
  state.replaced = replaced;
  const missing = queryNos.filter((queryNo) => !index.queries.has(queryNo));
  state.version = addSome(store, index, missing, inSteps ? INDEXED_CHARACTERS : Infinity) ? version : null;
  return { index, isWhole: state.version !== null };
}

/** Forgets the index of a connection; the next call of `indexOf` begins anew. */
export function forgetIndex(store: Store): void {
  known.delete(store);
}

/**
 * Adds queries of `missing` to the index, until those that were added have `most` characters together.
 * @returns whether all were added
 */
function addSome(store: Store, index: StandingIndex, missing: readonly number[], most: number): boolean {
  let room = most;
  for (let at = 0; at < missing.length; at += READ_AT_ONCE) {
    if (room <= 0) return false;
    const rows = readComparedQueries(store, missing.slice(at, at + READ_AT_ONCE));
    index.add(rows);
    for (const { characters } of rows) room -= characters;
  }
  return true;
}

/** Lists the numbers of indexed queries whose stored text or filter differs from the indexed one. */
function listReplaced(store: Store, { queries }: StandingIndex): number[] {
  const textOf = ({ query, filter }: Pick<NonNullable<ReturnType<typeof queries.get>>, 'query' | 'filter'>) =>
    JSON.stringify([query, filter]);
  return readComparedQueries(store, [...queries.keys()])
    .filter((row) => textOf(row) !== textOf(queries.get(row.queryNo)!))
    .map(({ queryNo }) => queryNo);
}
