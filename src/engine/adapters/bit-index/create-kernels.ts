import { EngineError } from '../../errors.ts';
import { createJsKernels } from './js-kernels.ts';
import type { KernelMemory, Kernels, Layout } from './kernels.ts';
import { createWasmKernels, hasWasmKernels } from './wasm-kernels.ts';

/** Which kernels scan the codes: WebAssembly where its vectors work, else JavaScript; or named ones. */
export type KernelChoice = 'auto' | 'wasm' | 'js';

/**
 * Makes the kernels for codes of one layout, with memory of their own.
 * @throws EngineError `invalid` where `wasm` is asked for on a machine that does not run it
 */
export function createKernels(
  layout: Layout,
  choice: KernelChoice,
): { readonly memory: KernelMemory; readonly kernels: Kernels } {
  requireKernels(choice);
  return choice !== 'js' && hasWasmKernels() ? createWasmKernels(layout) : createJsKernels(layout);
}

/** @throws EngineError `invalid` where this machine does not run the kernels */
export function requireKernels(choice: KernelChoice): void {
  if (choice !== 'wasm' || hasWasmKernels()) return;
  throw new EngineError(
    'invalid',
    'OM_VECTOR_INDEX=wasm: this machine or this Node has no WebAssembly with 128-bit SIMD; auto takes JavaScript there',
  );
}
