import { EngineError } from '../../errors.ts';
import { createJsKernels, createJsMemory } from './js-kernels.ts';
import type { KernelMemory, Kernels, Layout } from './kernels.ts';
import { createWasmKernels, createWasmMemory, hasWasmKernels } from './wasm-kernels.ts';

/**
 * Which implementation of the inner loops scans the codes: `wasm`, WebAssembly with 128-bit SIMD; `js`, plain
 * JavaScript with equal answers; `auto`, WebAssembly if this machine runs it, else JavaScript.
 */
export type KernelChoice = 'auto' | 'wasm' | 'js';

/**
 * Memory for the kernels: `WebAssembly.Memory` for kernels in WebAssembly, `SharedArrayBuffer` for kernels in
 * JavaScript. It can be sent to other threads of the process.
 */
export type SharedMemory = WebAssembly.Memory | SharedArrayBuffer;

/**
 * Creates memory for codes of one layout, with the threads' working areas but without rows. Pages that are never used
 * take no memory.
 * @throws EngineError `invalid` for `wasm` on a machine that does not run it
 */
export function createMemory(layout: Layout, choice: KernelChoice): SharedMemory {
  requireKernels(choice);
  return choice !== 'js' && hasWasmKernels() ? createWasmMemory(layout) : createJsMemory(layout);
}

/** Creates the kernels for a memory: in JavaScript for a SharedArrayBuffer, else in WebAssembly. */
export function createKernels(
  layout: Layout,
  memory: SharedMemory,
): { readonly memory: KernelMemory; readonly kernels: Kernels } {
  return memory instanceof SharedArrayBuffer
    ? createJsKernels(layout, memory)
    : { memory, kernels: createWasmKernels(layout, memory) };
}

/**
 * Checks that this machine runs the chosen kernels.
 * @throws EngineError `invalid` if it does not
 */
export function requireKernels(choice: KernelChoice): void {
  if (choice !== 'wasm' || hasWasmKernels()) return;
  throw new EngineError(
    'invalid',
    'OM_VECTOR_INDEX=wasm: this machine or this Node has no WebAssembly with 128-bit SIMD; auto takes JavaScript there',
  );
}
