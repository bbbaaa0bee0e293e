import type { VectorIndex } from '../ports.ts';
import { inSector } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import {
  listPassing,
  listPassingOf,
  rankVectors,
  rankVectorsOf,
  type VectorRank,
  type VectorScan,
} from '../store/search.ts';
import type { VectorSpace } from '../store/vectors.ts';
import type { Sector } from '../types.ts';
import type { QueryPlan } from './plan.ts';

/** A query's vector in the space that it may be compared in. */
export interface QueryVector extends VectorSpace {
  readonly embedding: Float32Array;
}

/** What a vector search found; with the number of its model where several were searched. */
export type DenseHit = VectorRank & { readonly modelNo?: number };

export interface DenseResult {
  /** Nearest first, one entry a memory: its best window. Over several models, by their places in their own list. */
  readonly hits: readonly DenseHit[];
  /** Where a whole scope was compared: each of its memories, in no order. Left out over several models, since it does not say by which. */
  readonly compared?: readonly VectorRank[];
  readonly note: string;
}

/** The index is asked for so many more than needed, since it orders by bits and knows no filter but the user. */
const SPARE = 100;
const WIDENED = 8;
const INDEX_MOST = 4_096;
const SCAN_MOST = 50_000;
/** To look up where a memory's vectors are takes as long as to read one: all of a user are read as long as they are no more for each of the scope. */
const LISTED_EACH = 2;

export interface VectorSearch {
  readonly plan: QueryPlan;
  readonly query: QueryVector;
  /** null where there is none; every vector of the scope is then compared. */
  readonly index: VectorIndex | null;
  readonly limit: number;
}

/** Nearest memories of the scope by exact cosine: `limit` of them, or of each sector where the plan goes by sectors. */
export function searchVectors(store: Store, search: VectorSearch): DenseResult {
  const { plan } = search;
  if (plan.denseSectors === null) return searchScope(store, search);
  const found = plan.denseSectors.map((sector) =>
    searchScope(store, { ...search, plan: planFor(store, plan, sector) }),
  );
  const distinct = new Map(found.flatMap(({ hits }) => hits.map((hit) => [hit.seq, hit])));
  return {
    hits: [...distinct.values()].sort((a, b) => b.similarity - a.similarity || a.seq - b.seq),
    note: plan.denseSectors.map((sector, place) => `${sector}: ${found[place]!.note}`).join('; '),
  };
}

/**
 * The lists of several models as one, by rank alone, since their cosines share no scale: the first of each, the second of each, and so on. A
 * memory that several found stands at its best place and keeps what that model says, so that more sectors do not mean more weight.
 * @param found one for each of `vectors`
 */
export function joinModels(vectors: readonly QueryVector[], found: readonly DenseResult[]): DenseResult {
  if (found.length === 1) return found[0]!;
  const joined = new Map<number, DenseHit>();
  const longest = Math.max(0, ...found.map(({ hits }) => hits.length));
  for (let place = 0; place < longest; place++) {
    for (const [model, { modelNo }] of vectors.entries()) {
      const hit = found[model]!.hits[place];
      if (hit !== undefined && !joined.has(hit.seq)) joined.set(hit.seq, { ...hit, modelNo });
    }
  }
  const note = found.length === 0 ? 'off' : found.map((one, model) => `model ${vectors[model]!.modelNo}: ${one.note}`);
  return { hits: [...joined.values()], note: [note].flat().join('; ') };
}

function planFor(store: Store, plan: QueryPlan, sector: Sector): QueryPlan {
  const filter = inSector(plan.filter, sector);
  const { scope } = plan;
  if (scope.kind === 'wide') return { ...plan, filter };
  return { ...plan, filter, scope: { ...scope, seqs: listPassingOf(store, filter, scope.seqs) } };
}

function searchScope(store: Store, { plan, query, index, limit }: VectorSearch): DenseResult {
  const scan = scanOf(query, limit);
  const compareAll = (seqs: readonly number[], note: string, vectorNos?: readonly number[]): DenseResult => {
    const { nearest, compared } = rankVectorsOf(store, scan, seqs, vectorNos);
    return { hits: nearest, compared, note };
  };
  if (plan.scope.kind === 'narrow') {
    const { seqs, userNo } = plan.scope;
    const vectorNos = userNo === undefined ? [] : (index?.vectorsOf(userNo, LISTED_EACH * seqs.length) ?? []);
    // Where they are fewer than memories, these have none yet, or the index is to be made again.
    return compareAll(seqs, 'exact scan', vectorNos.length < seqs.length ? undefined : vectorNos);
  }
  if (index === null) return compareAll(listPassing(store, plan.filter, SCAN_MOST), 'exact scan, no index');
  const { userNo } = plan.scope;
  const nearest = (k: number) => {
    const found = index.search({ embedding: query.embedding, userNo, purpose: 'rank', k });
    return { exhausted: found.length < k, hits: rankVectors(store, scan, found, plan.filter) };
  };
  const first = nearest(Math.min(INDEX_MOST, limit + SPARE));
  if (first.exhausted || first.hits.length >= limit) return { hits: first.hits, note: 'index' };
  const widened = nearest(Math.min(INDEX_MOST, WIDENED * (limit + SPARE)));
  if (widened.exhausted || widened.hits.length >= limit) return { hits: widened.hits, note: 'index, widened' };
  // What the index found stays in, since of a scope above SCAN_MOST only the oldest are listed.
  const seqs = [...listPassing(store, plan.filter, SCAN_MOST), ...widened.hits.map(({ seq }) => seq)];
  return compareAll(seqs, 'exact scan, since little that the index found passes');
}

/** Cosines of memories that other stages found. */
export function similaritiesOf(store: Store, query: QueryVector, seqs: readonly number[]): readonly VectorRank[] {
  return seqs.length === 0 ? [] : rankVectorsOf(store, scanOf(query, seqs.length), seqs).nearest;
}

function scanOf({ embedding, ...space }: QueryVector, limit: number): VectorScan {
  return { space, embedding, limit };
}
