/**
 * The embedder that runs an ONNX model on this machine, in the thread that calls it. The packages for this are
 * optional: `onnxruntime-web` (WebAssembly, one core, nothing to build) or `onnxruntime-node` (native, faster, all
 * cores), which is preferred if it is installed, and `@huggingface/tokenizers`.
 *
 * WebAssembly blocks its thread while it computes. Texts are therefore computed in groups (runs) that take no longer
 * than one long text, and the thread can do other work between two runs. On one core of a server, a model of the size
 * of all-MiniLM-L6 takes about 1 ms a token, and one with 12 layers of 768 dimensions about 6 ms.
 */

import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { InferenceSession, Tensor } from 'onnxruntime-web';
import pLimit from 'p-limit';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Embedder } from '../ports.ts';
import { fingerprint, MAX_TEXT_TOKENS, readLocalModel, type LocalModel, type ModelFiles } from './local-model.ts';
import type { Pooling } from './model-families.ts';
import { MODEL_VECTORS, readVectors } from './read-vectors.ts';

type Runtime = Pick<typeof import('onnxruntime-web'), 'InferenceSession' | 'Tensor' | 'env'>;

/**
 * The part of the tokenizers package that is used. It is declared here because the compiler does not find the package's
 * own types.
 */
interface Tokenizer {
  encode(text: string): { readonly ids: readonly number[] };
}
interface Tokenizers {
  readonly Tokenizer: new (tokenizer: object, config: object) => Tokenizer;
}

/** Greatest number of tokens of a run, a group of texts that are computed together; padding counts. */
const MAX_RUN_TOKENS = MAX_TEXT_TOKENS;
const TOKENIZER = '@huggingface/tokenizers';
const RUNTIMES = ['onnxruntime-node', 'onnxruntime-web'];
/**
 * Names of a model's outputs in order of preference: first an output with one vector for the whole text, then outputs
 * with one vector for each token.
 */
const OUTPUTS = ['sentence_embedding', 'last_hidden_state', 'token_embeddings'];

interface LoadedModel {
  readonly tokenizer: Tokenizer;
  /** Id of the token with which the shorter texts of a run are padded. */
  readonly padId: number;
  /** Greatest length of a text, in tokens; a longer one is cut. */
  readonly maxTokens: number;
  readonly session: InferenceSession;
  /** Name of the model's output that has the vectors. */
  readonly output: string;
  readonly Tensor: Runtime['Tensor'];
}

/**
 * Creates the embedder of the model in `LOCAL_MODEL_PATH`. Its first call loads the model; if loading fails, the next
 * call tries again. Calls reject with EngineError `unavailable` if the model cannot be loaded or fails.
 * @throws EngineError `invalid` if a package is missing, if `readLocalModel` refuses the folder, or if the model is
 *   known to make another number of dimensions than `OM_VEC_DIM`
 */
export function createLocalEmbedder(config: Config): Embedder {
  const { OM_VEC_DIM: dimensions, OM_LOCAL_POOLING: setting } = config;
  const local = readLocalModel(path.resolve(config.LOCAL_MODEL_PATH ?? ''), setting);
  checkDimensions(local, dimensions);
  const { pooling, prefixes } = local;
  const runtime = findRuntime();
  const named = fingerprint(local);
  // Parallel calls would only share the same cores, and would take more memory.
  const oneAtATime = pLimit(1);
  let loaded: Promise<LoadedModel> | undefined;

  async function load(): Promise<LoadedModel> {
    try {
      return await (loaded ??= loadModel(local, runtime, () => fingerprint(local) === named));
    } catch (error) {
      loaded = undefined;
      // No text is involved yet, so the message cannot quote one.
      throw failed(`could not be loaded: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  return {
    provider: 'local',
    // The fingerprint is part of the name: another model in the same folder makes another vector space.
    model: `${local.name}@${named}`,
    dimensions,
    ...MODEL_VECTORS,
    maxBatchTexts: Math.min(config.OM_EMBED_BATCH_TEXTS, 16),
    maxBatchTokens: Math.min(config.OM_EMBED_BATCH_TOKENS, 4 * MAX_RUN_TOKENS),
    async embed(texts, { purpose, signal }) {
      const model = await load();
      const tokens = texts.map((text) => tokenise(model, prefixes[purpose] + text));
      const vectors = new Array<number[]>(texts.length);
      for (const run of planRuns(tokens)) {
        await oneAtATime(async () => {
          if (signal?.aborted) throw failed('was given up by its caller');
          const computed = await compute(
            model,
            run.map((index) => tokens[index]!),
            pooling,
          ).catch(() => {
            // The runtime's message may quote the text.
            throw failed('failed');
          });
          run.forEach((index, i) => (vectors[index] = computed[i]!));
          await setImmediate();
        });
      }
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

/**
 * Loads the packages, the tokenizer and the model.
 * @param isSame tells whether the files are still those from which the model's name was computed; with other files, the
 *   vectors would belong to another vector space
 * @throws Error if loading fails, if the files have been replaced, or if the model requires an unknown input
 */
async function loadModel(
  { files, maxTokens }: LocalModel,
  runtimeName: string,
  isSame: () => boolean,
): Promise<LoadedModel> {
  const [{ Tokenizer }, { InferenceSession, Tensor, env }] = await Promise.all([
    import('@huggingface/tokenizers') as Promise<object> as Promise<Tokenizers>,
    import(runtimeName) as Promise<Runtime>,
  ]);
  const tokenizer = readJson(files.tokenizer) as { padding?: { pad_id?: number } | null };
  const tokenizerConfig = fs.existsSync(files.tokenizerConfig) ? readJson(files.tokenizerConfig) : {};
  // The runtime's own threads would outlive a stop, and a server's other cores have other work.
  env.wasm.numThreads = 1;
  const session = await InferenceSession.create(files.model, {
    executionProviders: [runtimeName === 'onnxruntime-web' ? 'wasm' : 'cpu'],
    logSeverityLevel: 3,
    ...externalWeights(files, runtimeName),
  });
  if (!isSame()) throw new Error('its files were replaced since the start, so a restart is needed');
  const unknown = session.inputNames.find((name) => !(name in INPUTS));
  if (unknown !== undefined) throw new Error(`it wants an input ${unknown}`);
  return {
    tokenizer: new Tokenizer(tokenizer, tokenizerConfig),
    padId: tokenizer.padding?.pad_id ?? 0,
    maxTokens,
    session,
    output: OUTPUTS.find((name) => session.outputNames.includes(name)) ?? session.outputNames[0]!,
    Tensor,
  };
}

/**
 * Returns the option that passes a separate file of weights to the WebAssembly runtime, which cannot read files; an
 * empty object if there is no such file, and for the native runtime, which reads it by itself.
 */
function externalWeights({ weights }: ModelFiles, runtimeName: string): InferenceSession.SessionOptions {
  if (weights === null || runtimeName !== 'onnxruntime-web') return {};
  return { externalData: [{ path: path.basename(weights), data: weights }] };
}

function readJson(file: string): object {
  return JSON.parse(fs.readFileSync(file, 'utf8')) as object;
}

/**
 * Converts a text to token ids, 1 to `maxTokens`. A text that is too long is cut, but keeps its last token, which marks
 * the end of a text. A text without tokens gives a single padding token.
 */
function tokenise({ tokenizer, padId, maxTokens }: LoadedModel, text: string): readonly number[] {
  const { ids } = tokenizer.encode(text);
  if (ids.length === 0) return [padId];
  return ids.length > maxTokens ? [...ids.slice(0, maxTokens - 1), ids.at(-1)!] : ids;
}

/**
 * Groups texts of similar length into runs that are computed together, as shorter texts are padded to the longest of
 * their run. Returns runs of indexes into `tokens`, each of at most `MAX_RUN_TOKENS` tokens with padding.
 */
function planRuns(tokens: readonly (readonly number[])[]): number[][] {
  const byLength = [...tokens.keys()].sort((a, b) => tokens[a]!.length - tokens[b]!.length);
  const runs: number[][] = [];
  for (const index of byLength) {
    const run = runs.at(-1);
    // Texts ascend in length, so this one is the longest of the run.
    if (run !== undefined && (run.length + 1) * tokens[index]!.length <= MAX_RUN_TOKENS) run.push(index);
    else runs.push([index]);
  }
  return runs;
}

/**
 * For each input of a model, by name, a function that returns the input's value for one token; `isText` is false for
 * padding.
 */
const INPUTS: Readonly<Record<string, (id: number, isText: boolean) => number>> = {
  input_ids: (id) => id,
  attention_mask: (_, isText) => (isText ? 1 : 0),
  // A text has one part, so every token has type 0.
  token_type_ids: () => 0,
};

/**
 * Runs the model on one run of texts, given as token ids. Returns one vector for each text, in order, not normalised.
 */
async function compute(
  { session, output, Tensor, padId }: LoadedModel,
  tokens: readonly (readonly number[])[],
  pooling: Pooling,
): Promise<number[][]> {
  const length = Math.max(...tokens.map((ids) => ids.length));
  const feeds = Object.fromEntries(
    session.inputNames.map((name) => {
      const values = tokens.flatMap((ids) =>
        Array.from({ length }, (_, i) => BigInt(INPUTS[name]!(ids[i] ?? padId, i < ids.length))),
      );
      return [name, new Tensor('int64', BigInt64Array.from(values), [tokens.length, length])];
    }),
  );
  const result = (await session.run(feeds, [output]))[output]!;
  return tokens.map((ids, row) => pool(result, row, pooling === 'cls' ? 1 : ids.length));
}

/**
 * Returns the vector of one text, not normalised: the model's own if it made one for the whole text, else the mean of
 * the first `count` token vectors.
 * @param row index of the text in the run
 */
function pool({ data, dims }: Tensor, row: number, count: number): number[] {
  const numbers = data as Float32Array;
  const [, length, width] = dims.length === 3 ? dims : [0, 1, dims[1]];
  const start = row * length * width!;
  const parts = dims.length === 3 ? count : 1;
  return Array.from({ length: width! }, (_, d) => {
    let sum = 0;
    for (let token = 0; token < parts; token += 1) sum += numbers[start + token * width! + d]!;
    return sum / parts;
  });
}

function refused(what: string): EngineError {
  return new EngineError('unavailable', `the local model's answer ${what}`);
}

function failed(what: string): EngineError {
  return new EngineError('unavailable', `the local model in LOCAL_MODEL_PATH ${what}`);
}
