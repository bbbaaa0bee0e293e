/**
 * The embedder that runs an ONNX model on this machine. The packages for this are optional: `onnxruntime-web`
 * (WebAssembly, one core, nothing to build) or `onnxruntime-node` (native, faster, all cores), which is preferred if it
 * is installed, and `@huggingface/tokenizers`.
 *
 * The model runs on a thread of its own, since it takes up to seconds for a text: on one core of a server, about 1 ms a
 * token with a model of the size of all-MiniLM-L6, and about 6 ms with 12 layers of 768 dimensions.
 */

import { createRequire } from 'node:module';
import path from 'node:path';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Embedder } from '../ports.ts';
import { fingerprint, readLocalModel, type LocalModel } from './local-model.ts';
import { createModelLink } from './local-model-link.ts';
import { MODEL_VECTORS, readVectors } from './read-vectors.ts';
import { MAX_RUN_TOKENS } from './run-local-model.ts';

const TOKENIZER = '@huggingface/tokenizers';
const RUNTIMES = ['onnxruntime-node', 'onnxruntime-web'];

/**
 * Creates the embedder of the model in `LOCAL_MODEL_PATH`. Its first call starts a thread and loads the model there; if
 * loading fails, the next call tries again. Calls reject with EngineError `unavailable` if the model cannot be loaded
 * or fails.
 * @throws EngineError `invalid` if a package is missing, if `readLocalModel` refuses the folder, or if the model is
 *   known to make another number of dimensions than `OM_VEC_DIM`
 */
export function createLocalEmbedder(config: Config): Embedder {
  const { OM_VEC_DIM: dimensions, OM_LOCAL_POOLING: setting } = config;
  const local = readLocalModel(path.resolve(config.LOCAL_MODEL_PATH ?? ''), setting);
  checkDimensions(local, dimensions);
  const { prefixes } = local;
  const named = fingerprint(local);
  const link = createModelLink({ local, runtime: findRuntime(), named });
  return {
    provider: 'local',
    // The fingerprint is part of the name: another model in the same folder makes another vector space.
    model: `${local.name}@${named}`,
    dimensions,
    ...MODEL_VECTORS,
    maxBatchTexts: Math.min(config.OM_EMBED_BATCH_TEXTS, 16),
    maxBatchTokens: Math.min(config.OM_EMBED_BATCH_TOKENS, 2 * MAX_RUN_TOKENS),
    close: link.close,
    async embed(texts, { purpose, signal }) {
      const vectors = await link.compute(
        texts.map((text) => prefixes[purpose] + text),
        signal,
      );
      return readVectors(vectors, { count: texts.length, dimensions, refused });
    },
  };
}

/**
 * Checks `OM_VEC_DIM` against the model, if the number of the model's dimensions is known.
 * @throws EngineError `invalid` if they differ
 */
function checkDimensions({ name, dimensions: made }: LocalModel, dimensions: number): void {
  if (made === null || made === dimensions) return;
  throw new EngineError(
    'invalid',
    `OM_VEC_DIM=${dimensions}: the model ${name} makes vectors of ${made} dimensions, so set it to ${made}`,
  );
}

/**
 * Returns the name of the package that runs models: the native one if it is installed.
 * @throws EngineError `invalid` if no such package, or no tokenizer, is installed
 */
function findRuntime(): string {
  const require = createRequire(import.meta.url);
  const isInstalled = (name: string) => {
    try {
      return require.resolve(name) !== '';
    } catch {
      return false;
    }
  };
  const runtime = RUNTIMES.find(isInstalled);
  if (runtime !== undefined && isInstalled(TOKENIZER)) return runtime;
  const missing = `${runtime ?? 'onnxruntime-web'} ${TOKENIZER}`;
  throw new EngineError('invalid', `OM_EMBEDDINGS=local needs packages that are not installed: npm install ${missing}`);
}

function refused(what: string): EngineError {
  return new EngineError('unavailable', `the local model's answer ${what}`);
}
