/**
 * Prefetches what the stages of a query read. In PostgreSQL each SQL statement costs a round trip, so a later stage is
 * also run with an earlier one, only for its reads (`Foresight.readSpeculatively`), and its statements are sent along.
 * Each stage then reads as usual and gets the prefetched rows. For a SQLite file, where `ahead` is null, nothing
 * happens.
 */

import type { VectorIndex } from '../ports.ts';
import { findUsers } from '../store/memory-counts.ts';
import type { Store } from '../store/open-store.ts';
import { askForWordState, openWordSearch } from '../store/word-index/open-word-search.ts';
import { runUncounted } from '../store/work-budget.ts';
import { readQueryText } from '../text/query-text.ts';
import { createHopefulReader } from '../store/ranking-rows.ts';
import { type Candidate, READ_CANDIDATES } from './candidate.ts';
import { joinModels, searchVectors, type VectorSearch } from './dense.ts';
import { findNamed } from './entity-graph.ts';
import { augmentQuery, expandFused, fuseLists, prefetchFusedLinks } from './from-lists.ts';
import type { Fused } from './fuse.ts';
import { withStems } from './lexical.ts';
import type { Lists } from './make-room.ts';
import type { CompleteQuery } from './options.ts';
import { NO_PARTS } from './parts.ts';
import { type QueryPlan, termsOf } from './plan.ts';
import type { RunningQuery } from './retrieve-context.ts';
import { questionsBefore } from './score-candidates.ts';
import { memoryCount, prefetchMemoryCount } from './term-frequencies.ts';

/**
 * Prefetches what the plan and the searches of a query read first: the users that the filter names, the number of
 * memories, the query's words and, with `entityGraph`, the entities that the query names. It must be called first in
 * the read of a query.
 */
export function prefetchForPlan(store: Store, { query, filter: { userIds }, entityGraph }: CompleteQuery): void {
  const { ahead } = store;
  if (ahead === null) return;
  const findNames = () => entityGraph && findNamed(store, query, userIds);
  ahead.readSpeculatively(() => userIds && findUsers(store, userIds), findNames);
  prefetchMemoryCount(store);
  askForWordState(store);
  // Words are looked up in the word index of one snapshot, whose version this call reads.
  memoryCount(store);
  const text = readQueryText(query);
  const terms = withStems({ query: text, terms: termsOf(text) });
  openWordSearch(store).expect(
    terms.map(({ words }) => words),
    'rank',
  );
  ahead.readSpeculatively(findNames);
}

/**
 * Prefetches the vectors that the search by vectors reads, in the round trip that reads the query's words.
 * @param searches searches whose indexes `onceAsked` made, so that a speculative read does not search twice
 */
export function prefetchForVectors(store: Store, searches: readonly VectorSearch[]): void {
  if (store.ahead === null) return;
  store.ahead.readSpeculatively(...searches.map((search) => () => searchVectors(store, search)));
  // The words of the query come in the round trip of the listed scope, or now.
  void openWordSearch(store).rows;
}

/**
 * Reads the ranking rows of what both searches of a wide scope find, in one statement, and prefetches what hangs on
 * these memories: their links, and the relations of the names in the query. It assumes that all that is found passes
 * the filter.
 * @param search searches with the plan that it is given, in which everything passes
 */
export function prefetchPassing(running: RunningQuery, plan: QueryPlan, search: (hopeful: QueryPlan) => Lists): void {
  const { context, query, vectors, vectorWeight } = running;
  const { store } = context;
  if (store.ahead === null || plan.scope.kind !== 'wide') return;
  const { lexical, dense } = runUncounted(() => search({ ...plan, rows: createHopefulReader() }));
  const found = [lexical.hits, ...dense.map(({ hits }) => hits)].flat().map(({ memoryNo }) => memoryNo);
  const fused = fuseLists(lexical, NO_PARTS, { dense: joinModels(vectors, dense), vectorWeight });
  store.ahead.readSpeculatively(
    () => expandFused(store, fused, plan, query),
    () => query.entityGraph && augmentQuery(store, plan, query),
  );
  plan.rows.listPassingOf(plan.filter, [...new Set(found)]);
}

/**
 * Wraps a vector index so that only the first of several searches with equal `k` runs; the others return its cached
 * result. All searches must be for one query vector, since only `k` tells them apart. The index of a SQLite file, which
 * needs no speculative reads, is returned as it is.
 */
export function onceAsked(store: Store, index: VectorIndex): VectorIndex {
  if (store.ahead === null) return index;
  const found = new Map<number, readonly number[]>();
  return {
    ...index,
    search(search) {
      const known = found.get(search.k) ?? index.search(search);
      found.set(search.k, known);
      return known;
    },
  };
}

/**
 * Number of texts that are prefetched beyond the 24 (`READ_CANDIDATES`) that later stages read, since `resolve` may put
 * other candidates among the first.
 */
const SPARE_TEXTS = 8;

/**
 * Reads the texts of the best 32 candidates in the round trip of the first statement of `resolve`. The stages after
 * `resolve` read most of these texts, and get them from the plan's reader.
 * @param candidates best first
 * @param resolveThem runs the stage `resolve`; it runs only speculatively, and its result is dropped
 */
export function prefetchTexts(
  { ahead }: Store,
  { texts }: QueryPlan,
  candidates: readonly Candidate[],
  resolveThem: () => unknown,
): void {
  if (ahead === null) return;
  ahead.readSpeculatively(resolveThem);
  const first = candidates.slice(0, READ_CANDIDATES + SPARE_TEXTS);
  texts(
    first.map(({ row }) => row.memoryNo),
    1,
  );
}

/**
 * Prefetches what the stages after both searches read: links of the best hits, the questions before these hits in their
 * sessions, and relations of the names in the query. It assumes that the message is a single question and that no
 * second search without superseded memories follows; otherwise other memories may be hits, and some of these reads are
 * useless.
 */
export function prefetchForLists(
  { context: { store }, query, vectors, vectorWeight }: RunningQuery,
  plan: QueryPlan,
  { lexical, dense }: Lists,
): void {
  if (store.ahead === null) return;
  const fused = fuseLists(lexical, NO_PARTS, { dense: joinModels(vectors, dense), vectorWeight });
  store.ahead.readSpeculatively(
    () => expandFused(store, fused, plan, query),
    () => questionsBefore(store, { plan, fused }),
    () => query.entityGraph && augmentQuery(store, plan, query),
  );
}

/**
 * Prefetches what is read beside the links of the fused hits: the questions before these hits, and, once the relations
 * of the names in the query are there, the memories about related names.
 */
export function prefetchForLinks(
  { context: { store }, query }: RunningQuery,
  plan: QueryPlan,
  fused: readonly Fused[],
): void {
  const { ahead } = store;
  if (ahead === null) return;
  ahead.readSpeculatively(() => questionsBefore(store, { plan, fused }));
  prefetchFusedLinks(store, fused, plan, query);
  if (query.entityGraph) ahead.readSpeculatively(() => augmentQuery(store, plan, query));
}
