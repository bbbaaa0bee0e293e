import { assert } from '../../errors.ts';
import type { VectorIndex } from '../../ports.ts';
import type { SharedReader } from '../../shared-memory.ts';
import type { Store } from '../../store/open-store.ts';
import { lastCode, readCodes, type VectorCode } from '../../store/vector-codes.ts';
import type { VectorSpace } from '../../store/vectors.ts';
import { openFollowingIndex, type VectorSource } from '../following-index/following-index.ts';
import { openCodeMatrix } from './code-matrix.ts';
import type { KernelChoice } from './create-kernels.ts';
import { createIndexMemory, type IndexMemory } from '../following-index/index-memory.ts';
import { createSharedVectors, type SharedVectors } from './shared-vectors.ts';

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
  /** Vectors that threads share, and the thread; by default the index has vectors of its own. */
  readonly shared?: SharedIndexOptions | undefined;
}

/** The share of one thread in vectors that threads search together. */
export interface SharedIndexOptions {
  /** The memory, which decides about the kernels and is counted by whoever made it. */
  readonly vectors: SharedVectors;
  readonly reader: SharedReader;
}

/**
 * Opens an approximate index that scans sign bits in memory. Its first search or load throws EngineError `invalid` if
 * the chosen kernels do not run on this machine.
 * @throws EngineError `internal` for shared vectors of another space
 */
export function openBitIndex(store: Store, space: VectorSpace, options: BitIndexOptions = {}): VectorIndex {
  const { indexMemory = createIndexMemory(), kernels = 'auto', shared } = options;
  if (shared === undefined) {
    const hold = () => openCodeMatrix(createSharedVectors({ space, kernels }));
    return openFollowingIndex(store, space, { source: CODES, indexMemory, hold });
  }
  const { vectors, reader } = shared;
  const { modelNo, dimensions, encoding } = vectors.space;
  const isSame = modelNo === space.modelNo && dimensions === space.dimensions && encoding === space.encoding;
  assert(isSame, 'shared vectors of another space');
  return openFollowingIndex(store, space, {
    source: CODES,
    indexMemory: createIndexMemory(),
    hold: () => openCodeMatrix(vectors, reader),
    reader,
  });
}
