import type { VectorEncoding, VectorIndex } from '../ports.ts';
import type { Store } from '../store/open-store.ts';
import { listPassing, rankVectors, rankVectorsOf, type VectorRank, type VectorScan } from '../store/search.ts';
import { encodeVector } from '../store/vector-encoding.ts';
import type { QueryPlan } from './plan.ts';

/** A query's vector in the space that it may be compared in. */
export interface QueryVector {
  readonly embedding: Float32Array;
  readonly modelNo: number;
  readonly encoding: VectorEncoding;
}

export interface DenseResult {
  /** Nearest first, one entry a memory: its best window. */
  readonly hits: readonly VectorRank[];
  readonly note: string;
}

/**
 * The index is asked for so many more than needed, since it orders by bits and knows no filter but the user. 20 lose nothing of the
 * recall@10 that 90 reach on LoCoMo padded to 20,000, and each further hundred costs sqlite-vec 3 ms.
 */
const SPARE = 20;
const WIDENED = 8;
const INDEX_MOST = 4_096;
const SCAN_MOST = 50_000;

/** Nearest memories of the scope by exact cosine. */
export function searchVectors(
  store: Store,
  { plan, query, index, limit }: { plan: QueryPlan; query: QueryVector; index: VectorIndex | null; limit: number },
): DenseResult {
  const scan = scanOf(query, limit);
  if (plan.scope.kind === 'narrow') return { hits: rankVectorsOf(store, scan, plan.scope.seqs), note: 'exact scan' };
  if (index === null) {
    return {
      hits: rankVectorsOf(store, scan, listPassing(store, plan.filter, SCAN_MOST)),
      note: 'exact scan, no index',
    };
  }
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
  return { hits: rankVectorsOf(store, scan, seqs), note: 'exact scan, since little that the index found passes' };
}

/** Cosines of memories that other stages found. */
export function similaritiesOf(store: Store, query: QueryVector, seqs: readonly number[]): readonly VectorRank[] {
  return seqs.length === 0 ? [] : rankVectorsOf(store, scanOf(query, seqs.length), seqs);
}

function scanOf({ embedding, encoding, modelNo }: QueryVector, limit: number): VectorScan {
  return { modelNo, encoding, embedding: encodeVector(embedding, encoding), limit };
}
