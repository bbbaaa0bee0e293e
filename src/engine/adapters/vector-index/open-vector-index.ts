import type { VectorIndex } from '../../ports.ts';
import type { Store } from '../../store/open-store.ts';
import type { VectorSpace } from '../../store/vectors.ts';
import { openBitIndex, type SharedIndexOptions } from '../bit-index/bit-index.ts';
import { type KernelChoice, requireKernels } from '../bit-index/create-kernels.ts';
import type { IndexMemory } from '../following-index/index-memory.ts';
import { openVec0Index } from './vec0-index.ts';

/** How vectors are searched: approximately by sign bits, with the named kernels, or exactly by sqlite-vec (`vec0`). */
export type VectorIndexChoice = KernelChoice | 'vec0';

export interface OpenVectorIndexOptions {
  readonly choice: VectorIndexChoice;
  /** Bound on the memory of all indexes of a thread. */
  readonly indexMemory: IndexMemory;
  /** Vectors that threads share, and the thread; `vec0` shares nothing and passes over it. */
  readonly shared?: SharedIndexOptions | undefined;
}

/**
 * Opens the chosen index of one space. The choice changes how a thread searches, and does not change the file. A choice
 * that this machine does not run fails at the first search or load; check it with `requireVectorIndex` before.
 */
export function openVectorIndex(
  store: Store,
  space: VectorSpace,
  { choice, indexMemory, shared }: OpenVectorIndexOptions,
): VectorIndex {
  return choice === 'vec0'
    ? openVec0Index(store, space, indexMemory)
    : openBitIndex(store, space, { kernels: choice, indexMemory, shared });
}

/** Throws EngineError `invalid` if this machine does not run the chosen index. */
export function requireVectorIndex(choice: VectorIndexChoice): void {
  if (choice !== 'vec0') requireKernels(choice);
}
