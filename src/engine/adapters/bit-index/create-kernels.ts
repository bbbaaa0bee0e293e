import { EngineError } from '../../errors.ts';
import { createJsKernels } from './js-kernels.ts';
import type { KernelMemory, Kernels, Layout } from './kernels.ts';
import { createWasmKernels, hasWasmKernels } from './wasm-kernels.ts';

/**
 * Which kernels scan the codes: `wasm`, WebAssembly with 128-bit SIMD; `js`, plain JavaScript, which gives the same
 * answers; `auto`, WebAssembly if this machine runs it, else JavaScript.
 */
export type KernelChoice = 'auto' | 'wasm' | 'js';

/**
 * Creates the kernels for codes of one layout, and their memory.
 * @throws EngineError `invalid` for `wasm` on a machine that does not run it
 */
export function createKernels(
  layout: Layout,
  choice: KernelChoice,
): { readonly memory: KernelMemory; readonly kernels: Kernels } {
  requireKernels(choice);
  return choice !== 'js' && hasWasmKernels() ? createWasmKernels(layout) : createJsKernels(layout);
}

/** Throws EngineError `invalid` if this machine does not run the chosen kernels. */
export function requireKernels(choice: KernelChoice): void {
  if (choice !== 'wasm' || hasWasmKernels()) return;
  throw new EngineError(
    'invalid',
    'OM_VECTOR_INDEX=wasm: this machine or this Node has no WebAssembly with 128-bit SIMD; auto takes JavaScript there',
  );
}
