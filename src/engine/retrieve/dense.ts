import type { VectorIndex } from '../ports.ts';
import { inSector } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { listPassing, listPassingOf } from '../store/passing-memories.ts';
import { rankVectors, rankVectorsOf, type VectorRank, type VectorScan } from '../store/vector-ranks.ts';
import type { VectorSpace } from '../store/vectors.ts';
import type { Sector } from '../types.ts';
import type { QueryPlan } from './plan.ts';

/** A query's vector, with the vector space in which it may be compared. */
export interface QueryVector extends VectorSpace {
  readonly embedding: Float32Array;
}

/**
 * A hit of the vector search. `modelNo` is the number of its embedding model; left out if only one model was searched.
 */
type DenseHit = VectorRank & { readonly modelNo?: number };

/** The result of the search by vectors. */
export interface DenseResult {
  /**
   * The memories with the nearest vectors, nearest first, each once, with its nearest window. If several models were
   * searched, the order is by the ranks in each model's own list.
   */
  readonly hits: readonly DenseHit[];
  /**
   * Every memory whose vectors an exact scan compared, in no order. It is left out if an index or a search by sectors
   * gave the hits, and if several models were searched, since an entry does not name its model.
   */
  readonly compared?: readonly VectorRank[];
  /** How the hits were found, as a text for the trace. */
  readonly note: string;
}

/**
 * Number of vectors that are requested from the index beyond `limit`. The index sorts by sign bits only and filters by
 * user only, so some of its results are dropped.
 */
const SPARE = 100;
/**
 * Factor on the number of requested vectors in the second search of the index. The second search runs if fewer than
 * `limit` results of the first one pass the filter.
 */
const WIDENED = 8;
/** Greatest number of vectors that one search requests from the index. */
const MAX_INDEX = 4_096;
/**
 * Greatest number of memories that an exact scan lists in a wide scope (`Scope`): the oldest ones of a larger scope. A
 * scan that follows a search of the index compares the memories that the index found as well.
 */
const MAX_SCAN = 50_000;
/**
 * For a narrow scope (`Scope`) of one user: if the user has at most this number of vectors for each memory of the
 * scope, all vectors of the user are read. With more vectors, looking up those of the scope is cheaper, since a lookup
 * takes as long as reading one vector.
 */
const LISTED_EACH = 2;

/** A search for the memories that are nearest to one vector of the query. */
export interface VectorSearch {
  readonly plan: QueryPlan;
  readonly query: QueryVector;
  /**
   * The vector index of the model; null if there is none. Then all vectors of the scope are compared; in a wide scope,
   * those of its oldest `MAX_SCAN` memories.
   */
  readonly index: VectorIndex | null;
  /** Greatest number of hits; if the plan searches sector by sector, greatest number for each sector. */
  readonly limit: number;
}

/**
 * Finds the nearest memories of the scope: at most `limit`, or at most `limit` of each sector if the plan searches by
 * sectors. Similarities are exact cosines. In a wide scope an approximate index chooses the vectors that are compared,
 * so a near memory may be missed.
 */
export function searchVectors(store: Store, search: VectorSearch): DenseResult {
  const { plan } = search;
  if (plan.denseSectors === null) return searchScope(store, search);
  const results = plan.denseSectors.map((sector) =>
    searchScope(store, { ...search, plan: planFor(store, plan, sector) }),
  );
  const distinct = new Map(results.flatMap(({ hits }) => hits.map((hit) => [hit.memoryNo, hit])));
  return {
    hits: [...distinct.values()].sort((a, b) => b.similarity - a.similarity || a.memoryNo - b.memoryNo),
    note: plan.denseSectors.map((sector, place) => `${sector}: ${results[place]!.note}`).join('; '),
  };
}

/**
 * Merges the hits of several models by rank alone, since cosines of different models cannot be compared: the first hit
 * of each list, then the second of each list, and so on. A memory that several models found appears once, at its best
 * rank, with the similarity by that model.
 * @param results one result for each of `vectors`, in their order; may be empty
 * @returns the hits of all models; a single result is returned unchanged
 */
export function joinModels(vectors: readonly QueryVector[], results: readonly DenseResult[]): DenseResult {
  if (results.length === 1) return results[0]!;
  const joined = new Map<number, DenseHit>();
  const longest = Math.max(0, ...results.map(({ hits }) => hits.length));
  for (let place = 0; place < longest; place++) {
    for (const [model, { modelNo }] of vectors.entries()) {
      const hit = results[model]!.hits[place];
      if (hit !== undefined && !joined.has(hit.memoryNo)) joined.set(hit.memoryNo, { ...hit, modelNo });
    }
  }
  const note =
    results.length === 0 ? 'off' : results.map((result, model) => `model ${vectors[model]!.modelNo}: ${result.note}`);
  return { hits: [...joined.values()], note: [note].flat().join('; ') };
}

/**
 * Returns a plan that searches only one sector. In a narrow scope, the list of memories is filtered by the sector here.
 */
function planFor(store: Store, plan: QueryPlan, sector: Sector): QueryPlan {
  const filter = inSector(plan.filter, sector);
  const { scope } = plan;
  if (scope.kind === 'wide') return { ...plan, filter };
  return { ...plan, filter, scope: { ...scope, memoryNos: listPassingOf(store, filter, scope.memoryNos) } };
}

function searchScope(store: Store, { plan, query, index, limit }: VectorSearch): DenseResult {
  const scan = scanOf(query, limit);
  const compareAll = (memoryNos: readonly number[], note: string, vectorNos?: readonly number[]): DenseResult => {
    const { nearest, compared } = rankVectorsOf(store, scan, memoryNos, vectorNos);
    return { hits: nearest, compared, note };
  };
  if (plan.scope.kind === 'narrow') {
    const { memoryNos, userNo } = plan.scope;
    const vectorNos = userNo === undefined ? [] : (index?.vectorsOf(userNo, LISTED_EACH * memoryNos.length) ?? []);
    // Fewer vectors than memories mean that some memories have none yet, or that the index is to be built anew.
    return compareAll(memoryNos, 'exact scan', vectorNos.length < memoryNos.length ? undefined : vectorNos);
  }
  if (index === null) return compareAll(listPassing(store, plan.filter, MAX_SCAN), 'exact scan, no index');
  const { userNo } = plan.scope;
  const nearest = (k: number) => {
    const vectorNos = index.search({ embedding: query.embedding, userNo, purpose: 'rank', k });
    return { exhausted: vectorNos.length < k, hits: rankVectors(store, scan, vectorNos, plan.filter, plan.rows) };
  };
  const first = nearest(Math.min(MAX_INDEX, limit + SPARE));
  if (first.exhausted || first.hits.length >= limit) return { hits: first.hits, note: 'index' };
  const widened = nearest(Math.min(MAX_INDEX, WIDENED * (limit + SPARE)));
  if (widened.exhausted || widened.hits.length >= limit) return { hits: widened.hits, note: 'index, widened' };
  // The hits of the index stay in, since only the oldest memories of a scope above MAX_SCAN are listed.
  const memoryNos = [...listPassing(store, plan.filter, MAX_SCAN), ...widened.hits.map(({ memoryNo }) => memoryNo)];
  return compareAll(memoryNos, 'exact scan, since little that the index found passes');
}

/**
 * Computes the cosine between the query and the nearest window of each memory, nearest memory first. Memories without a
 * vector of the query's model are left out.
 */
export function similaritiesOf(store: Store, query: QueryVector, memoryNos: readonly number[]): readonly VectorRank[] {
  return memoryNos.length === 0 ? [] : rankVectorsOf(store, scanOf(query, memoryNos.length), memoryNos).nearest;
}

function scanOf({ embedding, ...space }: QueryVector, limit: number): VectorScan {
  return { space, embedding, limit };
}
