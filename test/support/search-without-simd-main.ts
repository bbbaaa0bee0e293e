import { openVectorIndex, requireVectorIndex } from '../../src/engine/adapters/vector-index/open-vector-index.ts';
import { createIndexMemory } from '../../src/engine/adapters/following-index/index-memory.ts';
import { hasWasmKernels } from '../../src/engine/adapters/bit-index/wasm-kernels.ts';
import { openStore } from '../../src/engine/store/open-store.ts';

/**
 * Searches a vector index, in a process that was started without WebAssembly SIMD. The arguments are the path of a file
 * and the query vector as JSON. It prints the results, and what is refused without SIMD.
 */
const [file, embedding] = process.argv.slice(2) as [string, string];
const store = openStore(file, { role: 'reader' });
const vector = Float32Array.from(JSON.parse(embedding) as number[]);
const space = { modelNo: 1, dimensions: vector.length, encoding: 'int5' } as const;
const index = openVectorIndex(store, space, { choice: 'auto', indexMemory: createIndexMemory() });
const found = index.search({ embedding: vector, purpose: 'rank', k: 20 });
let refusal: string | undefined;
try {
  requireVectorIndex('wasm');
} catch (error) {
  refusal = (error as Error).message;
}
store.close();
process.stdout.write(JSON.stringify({ hasWasmKernels: hasWasmKernels(), found, refusal }));
