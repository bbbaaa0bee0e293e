import type { VectorIndex } from '../../ports.ts';
import type { Store } from '../../store/open-store.ts';
import { lastCode, readCodes, type VectorCode } from '../../store/vector-codes.ts';
import type { VectorSpace } from '../../store/vectors.ts';
import { openFollowingIndex, type VectorSource } from '../following-index/following-index.ts';
import { createCodeMatrix } from './code-matrix.ts';
import type { KernelChoice } from './create-kernels.ts';
import { createIndexMemory, type IndexMemory } from '../following-index/index-memory.ts';

/** Reads the codes of vectors that the file holds (`store/vector-codes.ts`). */
const CODES: VectorSource<VectorCode> = {
  atOnce: 1_000,
  last: lastCode,
  read(store, space, range) {
    const { codes, upTo } = readCodes(store, space, range);
    return { vectors: codes, upTo };
  },
};

export interface BitIndexOptions {
  /** Bound on the memory of all indexes of a thread; none by default. */
  readonly indexMemory?: IndexMemory | undefined;
  /** Which kernels scan the codes; 'auto' by default. */
  readonly kernels?: KernelChoice | undefined;
}

/**
 * Opens an approximate index that scans sign bits in memory. Its first search or load throws EngineError `invalid` if
 * the chosen kernels do not run on this machine.
 */
export function openBitIndex(store: Store, space: VectorSpace, options: BitIndexOptions = {}): VectorIndex {
  const { indexMemory = createIndexMemory(), kernels = 'auto' } = options;
  return openFollowingIndex(store, space, {
    source: CODES,
    indexMemory,
    hold: () => createCodeMatrix(space.dimensions, kernels),
  });
}
