/**
 * Reads the folder of a local model in Hugging Face's ONNX format: which files it has, how its texts are prepared and
 * how its vectors are computed. The operator's settings have precedence, then the folder's own files, then what is
 * known about the model's family.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { EngineError } from '../errors.ts';
import { familyOf, type Pooling, type Prefixes } from './model-families.ts';

/** Paths of a model's files. */
export interface ModelFiles {
  readonly model: string;
  /**
   * Path of the file with the weights if they are separate from `model`, as ONNX requires above 2 GB; null if they are
   * inside `model`.
   */
  readonly weights: string | null;
  readonly tokenizer: string;
  /** Path of `tokenizer_config.json`; the file may be missing. */
  readonly tokenizerConfig: string;
}

/** A model whose files are on this machine. */
export interface LocalModel {
  /** Name of the model's folder. */
  readonly name: string;
  readonly files: ModelFiles;
  readonly pooling: Pooling;
  readonly prefixes: Prefixes;
  /** Greatest length of a text, in tokens, at most 512 (`MAX_TEXT_TOKENS`); a longer one is cut. */
  readonly maxTokens: number;
  /**
   * Number of dimensions of the model's vectors; null if its files do not state it, or if they name a layer after the
   * pooling (`Dense`), which may change it.
   */
  readonly dimensions: number | null;
}

/**
 * Greatest length of a text for any local model, in tokens; a longer text is cut. A window of a memory is about as
 * long, and a model's time grows with the length.
 */
export const MAX_TEXT_TOKENS = 512;
/** Greatest size of a JSON file that describes a model (bytes); a larger one is refused. */
const MAX_DESCRIPTION_BYTES = 1_000_000;

/**
 * Reads what the files in a model's folder say about the model. The model itself is not loaded.
 * @param setting how token vectors are pooled; `auto` uses what the folder says, else what is known of the model's
 *   family, else `mean`
 * @throws EngineError `invalid` if the folder has no `model.onnx` (itself or in its folder `onnx`) or no
 *   `tokenizer.json`, if a file that describes the model cannot be read, or if `setting` is `auto` and the model
 *   requires a pooling that Cairn does not know
 */
export function readLocalModel(folder: string, setting: Pooling | 'auto'): LocalModel {
  const name = path.basename(folder);
  const files = findModel(folder);
  const family = familyOf(name);
  const { prompts } = readDescription(folder, 'config_sentence_transformers.json');
  const modules = readDescription(folder, 'modules.json');
  const config = readDescription(folder, 'config.json');
  return {
    name,
    files,
    pooling: setting === 'auto' ? (poolingOfFolder(folder) ?? family.pooling ?? 'mean') : setting,
    prefixes: promptsOf(prompts) ?? family.prefixes,
    maxTokens: Math.min(MAX_TEXT_TOKENS, positionsOf(config)),
    // A layer after the pooling may change the length.
    dimensions: JSON.stringify(modules).includes('Dense') ? null : positiveInteger(config['hidden_size']),
  };
}

function findModel(folder: string): ModelFiles {
  const find = (...names: readonly string[]) => {
    const existing = names.map((name) => path.join(folder, name)).find((file) => fs.existsSync(file));
    if (existing === undefined) throw new EngineError('invalid', `LOCAL_MODEL_PATH=${folder}: holds no ${names[0]}`);
    return existing;
  };
  const model = find('model.onnx', path.join('onnx', 'model.onnx'));
  // `model.onnx` refers to this file by its name, even if `model.onnx` itself was renamed.
  const weights = fs.readdirSync(path.dirname(model)).find((file) => file.endsWith('.onnx_data'));
  return {
    model,
    weights: weights === undefined ? null : path.join(path.dirname(model), weights),
    tokenizer: find('tokenizer.json'),
    tokenizerConfig: path.join(folder, 'tokenizer_config.json'),
  };
}

/**
 * Reads a small JSON file of the folder, which must be an object or a list. A file that does not exist gives an empty
 * object.
 * @throws EngineError `invalid` if it is too large or not such JSON
 */
function readDescription(folder: string, name: string): Readonly<Record<string, unknown>> {
  const file = path.join(folder, name);
  if (!fs.existsSync(file)) return {};
  try {
    if (fs.statSync(file).size > MAX_DESCRIPTION_BYTES) throw new Error('too large');
    const value: unknown = JSON.parse(fs.readFileSync(file, 'utf8'));
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // Reported below, without the file's contents.
  }
  throw new EngineError('invalid', `LOCAL_MODEL_PATH=${folder}: its ${name} is no JSON that describes a model`);
}

/**
 * Returns the pooling that the folder's sentence-transformers configuration states; null if it has none.
 * @throws EngineError `invalid` for a pooling that Cairn does not know
 */
function poolingOfFolder(folder: string): Pooling | null {
  const description = readDescription(folder, path.join('1_Pooling', 'config.json'));
  const wanted = Object.keys(description).filter((key) => key.startsWith('pooling_mode_') && description[key] === true);
  if (wanted.length === 0) return null;
  if (wanted.length === 1 && wanted[0] === 'pooling_mode_mean_tokens') return 'mean';
  if (wanted.length === 1 && wanted[0] === 'pooling_mode_cls_token') return 'cls';
  throw new EngineError(
    'invalid',
    `LOCAL_MODEL_PATH=${folder}: the model wants ${wanted.join(' and ')}, and Cairn knows pooling_mode_mean_tokens ` +
      'and pooling_mode_cls_token; take another model, or set OM_LOCAL_POOLING to mean or cls if its card allows that',
  );
}

/**
 * Returns the prefixes that the folder's sentence-transformers configuration states; null if it has none for either
 * purpose.
 */
function promptsOf(prompts: unknown): Prefixes | null {
  if (typeof prompts !== 'object' || prompts === null) return null;
  const named = (...names: readonly string[]) =>
    names.map((name) => (prompts as Record<string, unknown>)[name]).find((prompt) => typeof prompt === 'string');
  const query = named('query', 'search_query', 'Retrieval-query');
  const document = named('document', 'passage', 'search_document', 'Retrieval-document');
  if (query === undefined && document === undefined) return null;
  return { query: query ?? '', document: document ?? '' };
}

/**
 * Matches types of models whose position numbers start after the position of the padding, so that two positions of
 * their table cannot be used.
 */
const OFFSET_POSITIONS = /roberta|mpnet|camembert/;

/**
 * Returns the greatest number of tokens that the model's position table allows; Infinity if its description does not
 * state it.
 */
function positionsOf(config: Readonly<Record<string, unknown>>): number {
  const positions = positiveInteger(config['max_position_embeddings']);
  if (positions === null) return Number.POSITIVE_INFINITY;
  return OFFSET_POSITIONS.test(String(config['model_type'])) ? Math.max(1, positions - 2) : positions;
}

function positiveInteger(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null;
}

/** Number of samples, at equal distances in a model's file, from which its fingerprint is made. */
const SAMPLES = 16;
/** Length of a sample (bytes). */
const SAMPLE_BYTES = 65_536;

/**
 * Returns a fingerprint of the model as 8 hexadecimal digits: a digest of the pooling, the document prefix if it is not
 * that of the family, the tokenizer's file, and the size and samples of the model and its weights. Only samples are
 * read, since reading all bytes would take seconds.
 */
export function fingerprint({ files, pooling, prefixes, name }: LocalModel): string {
  const hash = createHash('sha256').update(pooling).update(fs.readFileSync(files.tokenizer));
  // The model's name implies the document prefix of its family; only another prefix changes the fingerprint.
  if (prefixes.document !== familyOf(name).prefixes.document) hash.update(prefixes.document);
  addSamples(files.model);
  if (files.weights !== null) addSamples(files.weights);
  return hash.digest('hex').slice(0, 8);

  function addSamples(name: string): void {
    const file = fs.openSync(name, 'r');
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
  }
}
