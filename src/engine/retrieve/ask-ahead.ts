/**
 * What the stages of a query ask, asked a stage earlier where a question costs a round trip (see `Foresight.rehearse`).
 * Each stage still asks what it asks, and finds the answer. Nothing happens for a file.
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
import { askForMemoryCount, memoryCount } from './term-frequencies.ts';

/**
 * Asks for the users of a query with its first question, and for its words and names with the next one, which lists the
 * scope or searches. Call it first in the read of a query.
 */
export function askBeforePlan(store: Store, { query, filter: { userIds }, entityGraph }: CompleteQuery): void {
  const { ahead } = store;
  if (ahead === null) return;
  const findNames = () => entityGraph && findNamed(store, query, userIds);
  ahead.rehearse(() => userIds && findUsers(store, userIds), findNames);
  askForMemoryCount(store);
  // The words are those of a version of the snapshot, which this question tells.
  memoryCount(store);
  const text = readQueryText(query);
  const terms = withStems({ query: text, terms: termsOf(text) });
  openWordSearch(store).expect(
    terms.map(({ words }) => words),
    'rank',
  );
  ahead.rehearse(findNames);
}

/**
 * Asks for the vectors of a search with what the search by words asks first, and then for what either asks about the
 * memories that it found.
 * @param searches with indexes of `onceAsked`
 */
export function askOfVectors(store: Store, searches: readonly VectorSearch[]): void {
  if (store.ahead === null) return;
  const readings = searches.map((search) => () => searchVectors(store, search));
  store.ahead.rehearse(...readings);
  // The words of the query come in the round trip of the listed scope, or now.
  void openWordSearch(store).rows;
  store.ahead.rehearse(...readings);
}

/** Makes an index that searches once where a query rehearses its search; a file's stays as it is. */
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

/** Number of texts beyond those of the first candidates that are read ahead, since `resolve` may move some. */
const SPARE_TEXTS = 8;

/**
 * Reads the texts that the stages after `resolve` read, as a rule, in the round trip of what `resolve` asks first.
 * @param candidates best first
 */
export function readTextsAhead(
  { ahead }: Store,
  { texts }: QueryPlan,
  candidates: readonly Candidate[],
  resolveThem: () => unknown,
): void {
  if (ahead === null) return;
  ahead.rehearse(resolveThem);
  const first = candidates.slice(0, READ_CANDIDATES + SPARE_TEXTS);
  texts(
    first.map(({ row }) => row.memoryNo),
    1,
  );
}

/**
 * Asks for what follows from the lists of both searches: links of the best hits, questions before them, and relations
 * of names. The guess is that the message is one question and that its lists have room.
 */
export function askOfLists(
  { context: { store }, query, vectors, vectorWeight }: RunningQuery,
  plan: QueryPlan,
  { lexical, dense }: Lists,
): void {
  if (store.ahead === null) return;
  const fused = fuseLists(lexical, NO_PARTS, { dense: joinModels(vectors, dense), vectorWeight });
  store.ahead.rehearse(
    () => expandFused(store, fused, plan, query),
    () => questionsBefore(store, { plan, fused }),
    () => query.entityGraph && augmentQuery(store, plan, query),
  );
}
