import type { VectorIndex } from '../../ports.ts';
import type { Store } from '../../store/open-store.ts';
import type { VectorSpace } from '../../store/vectors.ts';
import { openBitIndex, type SharedIndexOptions } from '../bit-index/bit-index.ts';
import { type KernelChoice, requireKernels } from '../bit-index/create-kernels.ts';
import type { IndexMemory } from '../following-index/index-memory.ts';
import { openVec0Index } from './vec0-index.ts';

/**
 * How vectors are searched: approximately by sign bits, with the named implementation of the inner loops, or exactly by
 * sqlite-vec (`vec0`).
 */
export type VectorIndexChoice = KernelChoice | 'vec0';

export interface OpenVectorIndexOptions {
  readonly choice: VectorIndexChoice;
  /** Counts the memory of all indexes of a thread and enforces its limit; not used for sign bits in `shared` memory. */
  readonly indexMemory: IndexMemory;
  /** Vectors in memory that several threads share; none by default. `vec0` ignores it. */
  readonly shared?: SharedIndexOptions | undefined;
}

/**
 * Opens the chosen index of one vector space. The choice changes how this thread searches, not what is in the file. A
 * choice that this machine cannot run fails at the first search or load; `requireVectorIndex` checks it beforehand.
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

/**
 * Checks that the chosen index runs on this machine.
 * @throws EngineError `invalid` if it does not
 */
export function requireVectorIndex(choice: VectorIndexChoice): void {
  if (choice !== 'vec0') requireKernels(choice);
}
