import type { VectorIndex } from '../ports.ts';
import { getVectorSpace } from '../store/embeddings.ts';
import type { Store } from '../store/open-store.ts';
import { lastVectorNo, readVectorsAfter } from '../store/vectors.ts';

const SLICE = 500;

/**
 * Makes an index again from the canonical vectors, a short write a slice, so that other writers get in between. Vectors that they
 * add meanwhile have higher numbers than any at the start, and reach the index by their own way.
 * @returns how many vectors the index took
 */
export function rebuildVectorIndex(store: Store, index: VectorIndex, modelNo: number): number {
  const space = getVectorSpace(store, modelNo);
  const last = store.write(() => {
    index.clear();
    return lastVectorNo(store);
  });
  let count = 0;
  for (let after = 0; after < last;) {
    after = store.write(() => {
      const vectors = readVectorsAfter(store, space, { after, last, limit: SLICE });
      index.add(vectors);
      count += vectors.length;
      return vectors.at(-1)?.vectorNo ?? last;
    });
  }
  return count;
}
