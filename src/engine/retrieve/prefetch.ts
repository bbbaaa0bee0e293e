/**
 * Prefetches what the stages of a query read. In PostgreSQL each SQL statement costs a round trip, so a later stage is
 * also run with an earlier one, only for its reads (`Foresight.readSpeculatively`), and its statements are sent along.
 * Each stage then reads as usual and gets the prefetched rows. For a SQLite file, where `ahead` is null, nothing
 * happens.
 */

import type { VectorIndex } from '../ports.ts';
import { findUsers } from '../store/memory-counts.ts';
import type { Store } from '../store/open-store.ts';
import { openWordSearch } from '../store/word-index/open-word-search.ts';
import { readQueryText } from '../text/query-text.ts';
import { type Candidate, READ_CANDIDATES } from './candidate.ts';
import { joinModels, searchVectors, type VectorSearch } from './dense.ts';
import { findNamed } from './entity-graph.ts';
import { augmentQuery, expandFused, fuseLists } from './from-lists.ts';
import { withStems } from './lexical.ts';
import type { Lists } from './make-room.ts';
import type { CompleteQuery } from './options.ts';
import { NO_PARTS } from './parts.ts';
import { type QueryPlan, termsOf } from './plan.ts';
import type { RunningQuery } from './retrieve-context.ts';
import { questionsBefore } from './score-candidates.ts';
import { memoryCount, prefetchMemoryCount } from './term-frequencies.ts';

/**
 * Prefetches the users, words and names of a query: the users with the first SQL statement of the query, the others
 * with the next statement, which lists the searched memories or searches. Call it first in the read of a query.
 */
export function prefetchForPlan(store: Store, { query, filter: { userIds }, entityGraph }: CompleteQuery): void {
  const { ahead } = store;
  if (ahead === null) return;
  const findNames = () => entityGraph && findNamed(store, query, userIds);
  ahead.readSpeculatively(() => userIds && findUsers(store, userIds), findNames);
  prefetchMemoryCount(store);
  // The words are those of a version of the snapshot, which this question tells.
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
 * Prefetches what the search by vectors reads: the vectors in the round trip of the first words, then the rows of the
 * memories that it found in the round trip of the next read.
 * @param searches searches whose indexes `onceAsked` made, so that a speculative read does not search twice
 */
export function prefetchForVectors(store: Store, searches: readonly VectorSearch[]): void {
  if (store.ahead === null) return;
  const readings = searches.map((search) => () => searchVectors(store, search));
  store.ahead.readSpeculatively(...readings);
  // The words of the query come in the round trip of the listed scope, or now.
  void openWordSearch(store).rows;
  store.ahead.readSpeculatively(...readings);
}

/**
 * Wraps a vector index so that searches with the same number of wanted vectors `k` run once and then return the kept
 * result. It is meant for the searches of one query vector, since only `k` tells them apart. The index of a SQLite
 * file, which needs no speculative reads, is returned as it is.
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
 * second search without superseded memories follows; otherwise the hits may be others, and some of this is read for
 * nothing.
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
