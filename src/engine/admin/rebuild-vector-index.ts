import type { VectorIndex } from '../ports.ts';
import { getVectorSpace } from '../store/embeddings.ts';
import type { Store } from '../store/open-store.ts';
import { lastVectorNo, readVectorsAfter } from '../store/vectors.ts';

/** Greatest number of vectors that one write adds. */
const SLICE = 500;

/**
 * Empties a vector index and makes it again from the stored vectors, in short writes, so that other connections can
 * write in between. Vectors that they add meanwhile have higher numbers than any at the start, and their writers add
 * them to the index.
 * @param index the index of the model with the number `modelNo` in this file
 * @returns the number of vectors that were stored at the start and are in the index now
 * @throws EngineError `not_found` if the file has no such model
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
