import type { VectorIndex } from '../../ports.ts';
import type { Store } from '../../store/open-store.ts';
import { lastCode, readCodes, type VectorCode } from '../../store/vector-codes.ts';
import type { VectorSpace } from '../../store/vectors.ts';
import { openFollowingIndex, type VectorSource } from '../following-index/following-index.ts';
import { createCodeMatrix } from './code-matrix.ts';
import type { KernelChoice } from './create-kernels.ts';
import { createIndexMemory, type IndexMemory } from '../following-index/index-memory.ts';

/** The file holds the codes of vectors (`store/vector-codes.ts`). */
const CODES: VectorSource<VectorCode> = {
  atOnce: 1_000,
  last: lastCode,
  read(store, space, range) {
    const { codes, upTo } = readCodes(store, space, range);
    return { vectors: codes, upTo };
  },
};

export interface BitIndexOptions {
  /** What all indexes of a thread may hold; by default what each needs. */
  readonly indexMemory?: IndexMemory | undefined;
  /** What scans the codes; 'auto' by default. */
  readonly kernels?: KernelChoice | undefined;
}

/** A scan of sign bits in memory. */
export function openBitIndex(store: Store, space: VectorSpace, options: BitIndexOptions = {}): VectorIndex {
  const { indexMemory = createIndexMemory(), kernels = 'auto' } = options;
  return openFollowingIndex(store, space, {
    ...{ source: CODES, indexMemory },
    hold: () => createCodeMatrix(space.dimensions, kernels),
  });
}
