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

/** Reads the codes (the sign bits) of vectors from the tenant's file (`store/vector-codes.ts`). */
const CODES: VectorSource<VectorCode> = {
  atOnce: 1_000,
  last: lastCode,
  read(store, space, range) {
    const { codes, upTo } = readCodes(store, space, range);
    return { vectors: codes, upTo };
  },
};

/** How a bit index counts its memory, scans its codes, and shares them with other threads. */
export interface BitIndexOptions {
  /**
   * Counts the memory of all indexes of a thread and enforces its limit; no limit by default. It is not used with
   * `shared`, whose memory the thread that created it counts.
   */
  readonly indexMemory?: IndexMemory | undefined;
  /**
   * Which implementation of the inner loops (kernels) scans the codes; `auto` by default. With `shared`, the choice was
   * made when the memory was created.
   */
  readonly kernels?: KernelChoice | undefined;
  /** Vectors in memory that several threads share; by default the index has vectors of its own. */
  readonly shared?: SharedIndexOptions | undefined;
}

/** Vectors in memory that several threads share, and the number of this thread among them. */
export interface SharedIndexOptions {
  /** The shared memory. The thread that created it has chosen the kernels and counts its bytes. */
  readonly vectors: SharedVectors;
  readonly reader: SharedReader;
}

/**
 * Opens an approximate vector index that scans the sign bits of vectors in memory. Its first search or load throws
 * EngineError `invalid` if the chosen kernels do not run on this machine.
 * @throws EngineError `internal` for shared vectors of another vector space
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
