import type { IndexedVector, VectorIndex } from '../../ports.ts';
import type { Store } from '../../store/open-store.ts';
import { createVec0Table } from '../../store/vec0-table.ts';
import { lastVectorNo, readVectorsAfter, type VectorSpace } from '../../store/vectors.ts';
import { followAlone } from '../following-index/followed-vectors.ts';
import { createIndexMemory, type IndexMemory } from '../following-index/index-memory.ts';
import { openFollowingIndex, type VectorSource } from '../following-index/following-index.ts';

const VECTORS: VectorSource<IndexedVector> = {
  atOnce: 200,
  last: lastVectorNo,
  read(store, space, { after, limit }) {
    const vectors = readVectorsAfter(store, space, { after, last: Number.MAX_SAFE_INTEGER, limit });
    return { vectors, upTo: vectors.length < limit ? Infinity : vectors.at(-1)!.vectorNo };
  },
};

/**
 * Opens the exact reference index: sqlite-vec compares a query vector with all vectors of the space by cosine. A vector
 * of 768 dimensions takes 3 KB of memory, so this index is for small files, and for measuring what an approximate index
 * misses.
 */
export function openVec0Index(
  store: Store,
  space: VectorSpace,
  indexMemory: IndexMemory = createIndexMemory(),
): VectorIndex {
  return openFollowingIndex(store, space, {
    source: VECTORS,
    indexMemory,
    hold: () => followAlone(createVec0Table(space.dimensions)),
  });
}
