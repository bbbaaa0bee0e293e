/**
 * Embeds by an ONNX model on this machine, in the thread that asks. The packages that run it are optional: `onnxruntime-web` (WebAssembly,
 * one core, nothing to build) or `onnxruntime-node` (native, faster, all cores), which is preferred where it is installed, and
 * `@huggingface/tokenizers`.
 *
 * WebAssembly keeps its thread busy while it computes, so texts are computed in runs of at most one long text, and the thread is free
 * between two runs. On one core of a server a model of the size of all-MiniLM-L6 takes about 1 ms a token, one of 12 layers of 768
 * about 6 ms.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { InferenceSession, Tensor } from 'onnxruntime-web';
import pLimit from 'p-limit';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Embedder } from '../ports.ts';
import { readVectors } from './read-vectors.ts';
import { taskPrefixes } from './task-prefixes.ts';

type Runtime = Pick<typeof import('onnxruntime-web'), 'InferenceSession' | 'Tensor' | 'env'>;

/** As much of the package as is used; its own types name no files that a compiler finds. */
interface Tokenizer {
  encode(text: string): { readonly ids: readonly number[] };
}
interface Tokenizers {
  readonly Tokenizer: new (tokenizer: object, config: object) => Tokenizer;
}

/** A longer text is cut: models of this kind were trained on so many tokens, and a window of a memory is about as long. */
const TEXT_TOKENS_MOST = 512;
/** Of a run, with padding. */
const RUN_TOKENS_MOST = 512;
const TOKENIZER = '@huggingface/tokenizers';
const RUNTIMES = ['onnxruntime-node', 'onnxruntime-web'];
/** By preference: a vector of the whole text, or one per token. */
const OUTPUTS = ['sentence_embedding', 'last_hidden_state', 'token_embeddings'];

interface LoadedModel {
  readonly tokenizer: Tokenizer;
  readonly padId: number;
  readonly session: InferenceSession;
  readonly output: string;
  readonly Tensor: Runtime['Tensor'];
}

/**
 * The model is loaded by the first call.
 * @throws EngineError `invalid` without a package that is needed, or without a model in `LOCAL_MODEL_PATH`
 */
export function createLocalEmbedder(config: Config): Embedder {
  const { OM_VEC_DIM: dimensions, OM_LOCAL_POOLING: pooling } = config;
  const folder = path.resolve(config.LOCAL_MODEL_PATH ?? '');
  const files = findModel(folder);
  const runtime = findRuntime();
  const prefixes = taskPrefixes(path.basename(folder));
  const named = fingerprint(files, pooling);
  // Calls in parallel would only take turns on the same cores, and memory.
  const oneAtATime = pLimit(1);
  let loaded: Promise<LoadedModel> | undefined;

  async function load(): Promise<LoadedModel> {
    try {
      return await (loaded ??= loadModel(files, runtime, () => fingerprint(files, pooling) === named));
    } catch (error) {
      loaded = undefined;
      // No text is involved yet, so nothing of one is in the message.
      throw failed(`could not be loaded: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  return {
    provider: 'local',
    // Another model in the same folder makes another space.
    model: `${path.basename(folder)}@${named}`,
    dimensions,
    encoding: 'float32',
    waypointThreshold: 0.75,
    vectorWeight: 0.5,
    cacheable: true,
    maxBatchTexts: Math.min(config.OM_EMBED_BATCH_TEXTS, 16),
    maxBatchTokens: Math.min(config.OM_EMBED_BATCH_TOKENS, 4 * RUN_TOKENS_MOST),
    async embed(texts, { purpose, signal }) {
      const model = await load();
      const tokens = texts.map((text) => tokenise(model, prefixes[purpose] + text));
      const vectors = new Array<number[]>(texts.length);
      for (const run of planRuns(tokens)) {
        await oneAtATime(async () => {
          if (signal?.aborted) throw failed('was given up by its caller');
          const computed = await compute(
            model,
            run.map((place) => tokens[place]!),
            pooling,
          ).catch(() => {
            // The runtime's own words may quote what it was given.
            throw failed('failed');
          });
          run.forEach((place, i) => (vectors[place] = computed[i]!));
          await setImmediate();
        });
      }
      return readVectors(vectors, { count: texts.length, dimensions, refused });
    },
  };
}

interface ModelFiles {
  readonly model: string;
  readonly tokenizer: string;
  /** May be missing. */
  readonly tokenizerConfig: string;
}

function findModel(folder: string): ModelFiles {
  const find = (...names: readonly string[]) => {
    const found = names.map((name) => path.join(folder, name)).find((file) => fs.existsSync(file));
    if (found === undefined) throw new EngineError('invalid', `LOCAL_MODEL_PATH=${folder}: holds no ${names[0]}`);
    return found;
  };
  return {
    model: find('model.onnx', path.join('onnx', 'model.onnx')),
    tokenizer: find('tokenizer.json'),
    tokenizerConfig: path.join(folder, 'tokenizer_config.json'),
  };
}

/** @returns the package that runs models */
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
  throw new EngineError(
    'invalid',
    `OM_EMBEDDINGS=local needs packages that are not installed: npm install ${runtime ?? 'onnxruntime-web'} ${TOKENIZER}`,
  );
}

const SAMPLES = 16;
const SAMPLE_BYTES = 65_536;

/** Of the tokenizer, how vectors are made, and the model's size and some of its bytes: to read all takes seconds. */
function fingerprint({ model, tokenizer }: ModelFiles, pooling: string): string {
  const hash = createHash('sha256').update(pooling).update(fs.readFileSync(tokenizer));
  const file = fs.openSync(model, 'r');
  try {
    const { size } = fs.fstatSync(file);
    hash.update(String(size));
    const sample = Buffer.alloc(SAMPLE_BYTES);
    for (let i = 0; i < SAMPLES; i += 1) {
      const length = fs.readSync(file, sample, 0, SAMPLE_BYTES, Math.floor((i * size) / SAMPLES));
      hash.update(sample.subarray(0, length));
    }
  } finally {
    fs.closeSync(file);
  }
  return hash.digest('hex').slice(0, 8);
}

/** @param isSame whether the files are still those that the space is named after: others make vectors of another one */
async function loadModel(files: ModelFiles, runtimeName: string, isSame: () => boolean): Promise<LoadedModel> {
  const [{ Tokenizer }, { InferenceSession, Tensor, env }] = await Promise.all([
    import('@huggingface/tokenizers') as Promise<object> as Promise<Tokenizers>,
    import(runtimeName) as Promise<Runtime>,
  ]);
  const tokenizer = readJson(files.tokenizer) as { padding?: { pad_id?: number } | null };
  const tokenizerConfig = fs.existsSync(files.tokenizerConfig) ? readJson(files.tokenizerConfig) : {};
  // Threads of its own would outlive a stop, and a server has others to keep busy.
  env.wasm.numThreads = 1;
  const session = await InferenceSession.create(files.model, {
    executionProviders: [runtimeName === 'onnxruntime-web' ? 'wasm' : 'cpu'],
    logSeverityLevel: 3,
  });
  if (!isSame()) throw new Error('its files were replaced since the start, so a restart is needed');
  const unknown = session.inputNames.find((name) => !(name in INPUTS));
  if (unknown !== undefined) throw new Error(`it wants an input ${unknown}`);
  return {
    tokenizer: new Tokenizer(tokenizer, tokenizerConfig),
    padId: tokenizer.padding?.pad_id ?? 0,
    session,
    output: OUTPUTS.find((name) => session.outputNames.includes(name)) ?? session.outputNames[0]!,
    Tensor,
  };
}

function readJson(file: string): object {
  return JSON.parse(fs.readFileSync(file, 'utf8')) as object;
}

/** Of a text that is too long the end goes, but the token that ends every text stays. */
function tokenise({ tokenizer, padId }: LoadedModel, text: string): readonly number[] {
  const { ids } = tokenizer.encode(text);
  if (ids.length === 0) return [padId];
  return ids.length > TEXT_TOKENS_MOST ? [...ids.slice(0, TEXT_TOKENS_MOST - 1), ids.at(-1)!] : ids;
}

/** Texts of like length go together, since the shorter are padded to the longest. Gives their places. */
function planRuns(tokens: readonly (readonly number[])[]): number[][] {
  const byLength = [...tokens.keys()].sort((a, b) => tokens[a]!.length - tokens[b]!.length);
  const runs: number[][] = [];
  for (const place of byLength) {
    const run = runs.at(-1);
    // The longest so far is the one that comes.
    if (run !== undefined && (run.length + 1) * tokens[place]!.length <= RUN_TOKENS_MOST) run.push(place);
    else runs.push([place]);
  }
  return runs;
}

/** What models take, of each token: with `isText` false where it is padding. */
const INPUTS: Readonly<Record<string, (id: number, isText: boolean) => number>> = {
  input_ids: (id) => id,
  attention_mask: (_, isText) => (isText ? 1 : 0),
  // All of one text.
  token_type_ids: () => 0,
};

async function compute(
  { session, output, Tensor, padId }: LoadedModel,
  tokens: readonly (readonly number[])[],
  pooling: Config['OM_LOCAL_POOLING'],
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
 * @param count tokens that take part, from the first
 * @returns the mean of a text's token vectors, or its vector where the model has made one
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
