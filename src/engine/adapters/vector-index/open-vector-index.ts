import type { VectorIndex } from '../../ports.ts';
import type { Store } from '../../store/open-store.ts';
import type { VectorSpace } from '../../store/vectors.ts';
import { openBitIndex } from '../bit-index/bit-index.ts';
import { type KernelChoice, requireKernels } from '../bit-index/create-kernels.ts';
import type { IndexMemory } from '../following-index/index-memory.ts';
import { openVec0Index } from './vec0-index.ts';

/** How vectors are searched: by sign bits with the kernels that run here, or named ones; or by sqlite-vec. */
export type VectorIndexChoice = KernelChoice | 'vec0';

/** Opens the chosen index of one space. The choice changes how a thread searches and nothing in the file. */
export function openVectorIndex(
  store: Store,
  space: VectorSpace,
  { choice, indexMemory }: { readonly choice: VectorIndexChoice; readonly indexMemory: IndexMemory },
): VectorIndex {
  return choice === 'vec0'
    ? openVec0Index(store, space, indexMemory)
    : openBitIndex(store, space, { kernels: choice, indexMemory });
}

/** @throws EngineError `invalid` where this machine does not run what was chosen */
export function requireVectorIndex(choice: VectorIndexChoice): void {
  if (choice !== 'vec0') requireKernels(choice);
}
