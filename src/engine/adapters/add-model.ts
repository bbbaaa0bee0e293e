/**
 * Installs a local embedding model: copies its files, tests it with three sentences, and reports how to configure it.
 */
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { CATALOGUE } from './model-catalogue.ts';
import { createLocalEmbedder } from './local-embedder.ts';
import { readLocalModel } from './local-model.ts';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import { cosine } from '../store/vector-encoding.ts';

/** A model that was installed, with the results of its test. */
export interface AddedModel {
  /** Folder of the model: the value of `LOCAL_MODEL_PATH`. */
  readonly folder: string;
  /** Number of dimensions of its vectors: the value of `OM_VEC_DIM`. */
  readonly dimensions: number;
  /** How a vector is made of the vectors of a text's tokens: their mean, or that of the first token (`cls`). */
  readonly pooling: 'mean' | 'cls';
  /** SHA-256 of `model.onnx`, 64 hex digits; it does not include a `.onnx_data` file in the same folder. */
  readonly sha256: string;
  /**
   * Cosines of sentence vectors by the model: `alike` between two sentences of equal meaning, `unlike` between two that
   * have nothing in common.
   */
  readonly trial: { readonly alike: number; readonly unlike: number };
}

/** A model to install. */
export interface ModelToAdd {
  /**
   * Name of the model's folder. The model's family is recognised by it. The family gives the prefixes and the pooling
   * that neither the settings nor the model's own files state.
   */
  readonly name: string;
  /** Paths of the model's files, or the path of one folder that contains them. */
  readonly from: readonly string[];
  /** Folder in which the model's folder is created; it is created itself if it does not exist. */
  readonly into: string;
  /**
   * SHA-256 that `model.onnx` must have, 64 hex digits in any case; not checked if left out. It does not include a
   * `.onnx_data` file in the same folder.
   */
  readonly sha256?: string | undefined;
  /**
   * Number of dimensions of the model's vectors. It is needed only if neither the model's folder nor the catalogue
   * states it.
   */
  readonly dimensions?: number | undefined;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const POOLING_FILE = path.join('1_Pooling', 'config.json');
/** Paths, in the model's folder, of the small files that a model may have. */
const SMALL_FILES = [
  'tokenizer.json',
  'tokenizer_config.json',
  'config.json',
  'config_sentence_transformers.json',
  'modules.json',
  POOLING_FILE,
];
/** Sentences with which a model is tested: two of equal meaning, and one that has nothing to do with them. */
const TRIAL = ['The cat is asleep on the sofa.', 'A cat is sleeping on the couch.', 'Interest rates rose in March.'];

/**
 * Copies a model's files into a folder of its own, checks the hash, computes three vectors as a test, and moves the
 * folder to its final path if all of that succeeds. If anything fails, no file is left.
 * @throws EngineError `invalid` if the name is not allowed, if a file is missing, named twice or no file of a model, if
 *   `readLocalModel` refuses the folder, if the hash or the dimensions are not as expected or the dimensions are not
 *   known, or if the packages that run models are not installed; `conflict` if there is a folder of this name;
 *   `unavailable` if the model cannot be loaded or makes no vectors of these dimensions; a system error if the files
 *   cannot be copied
 */
export async function addModel(
  { name, from, into, sha256, dimensions }: ModelToAdd,
  config: Config,
): Promise<AddedModel> {
  if (!NAME.test(name)) {
    throw new EngineError('invalid', 'the name of a model has 1 to 100 letters, digits, dots, hyphens and underscores');
  }
  const folder = path.join(into, name);
  if (fs.existsSync(folder)) {
    throw new EngineError('conflict', `${folder} exists: remove it first, or choose another name`);
  }
  const files = findFiles(from);
  // The folder already has its final name during the test, since the model's family is recognised by this name.
  const trialFolder = path.join(into, `.adding-${randomUUID()}`);
  const copy = path.join(trialFolder, name);
  try {
    const found = await copyFiles(files, copy);
    if (sha256 !== undefined && sha256.toLowerCase() !== found) {
      throw new EngineError('invalid', `the model's SHA-256 is ${found} and not the one expected: download it again`);
    }
    const added = await tryModel(copy, { ...config, LOCAL_MODEL_PATH: copy }, dimensions);
    fs.renameSync(copy, folder);
    return { ...added, folder, sha256: found };
  } finally {
    fs.rmSync(trialFolder, { recursive: true, force: true });
  }
}

/**
 * Finds the source of each file of the model. Returns a map from the path of each file in the model's folder to the
 * path of its source.
 * @throws EngineError `invalid` for a file that belongs to no model, for two sources of one file, and for a missing
 *   file
 */
function findFiles(from: readonly string[]): ReadonlyMap<string, string> {
  const [only] = from;
  const isFolder = from.length === 1 && fs.statSync(only!, { throwIfNoEntry: false })?.isDirectory() === true;
  const files = new Map<string, string>();
  for (const source of isFolder ? filesOfFolder(only!) : from) {
    const place = placeOf(source);
    if (place === null) {
      const known = ['*.onnx', '*.onnx_data', ...SMALL_FILES].join(', ');
      throw new EngineError('invalid', `${source} is no file of a model; those are ${known}`);
    }
    if (files.has(place)) {
      throw new EngineError('invalid', `${files.get(place)!} and ${source} are both ${place}: name one of them`);
    }
    files.set(place, source);
  }
  const missing = [...files.values()].find((source) => !fs.existsSync(source));
  if (missing !== undefined) throw new EngineError('invalid', `there is no file ${missing}`);
  for (const needed of ['model.onnx', 'tokenizer.json']) {
    if (!files.has(needed)) throw new EngineError('invalid', `a ${needed} is needed, and none of these files is one`);
  }
  return files;
}

/**
 * Lists the files of a downloaded repository that a model needs. Without a `model.onnx` at its top, `onnx/model.onnx`
 * is used.
 * @throws EngineError `invalid` if there is neither
 */
function filesOfFolder(folder: string): string[] {
  const at = ['', 'onnx']
    .map((name) => path.join(folder, name))
    .find((place) => fs.existsSync(path.join(place, 'model.onnx')));
  if (at === undefined) {
    throw new EngineError('invalid', `${folder} holds no model.onnx and no onnx/model.onnx: name the files one by one`);
  }
  const weights = path.join(at, 'model.onnx_data');
  return [path.join(at, 'model.onnx'), weights, ...SMALL_FILES.map((name) => path.join(folder, name))].filter((file) =>
    fs.existsSync(file),
  );
}

/** Returns the path that a file gets in the model's folder; null if it is not a file of a model. */
function placeOf(source: string): string | null {
  const name = path.basename(source);
  if (name.endsWith('.onnx')) return 'model.onnx';
  // `model.onnx` refers to this file by its name.
  if (name.endsWith('.onnx_data')) return name;
  const isPooling = name === 'config.json' && path.basename(path.dirname(path.resolve(source))) === '1_Pooling';
  if (isPooling) return POOLING_FILE;
  return SMALL_FILES.includes(name) ? name : null;
}

/**
 * Copies files into a folder.
 * @param files paths of the sources by their paths in the folder
 * @returns the SHA-256 of `model.onnx`, 64 hex digits
 */
async function copyFiles(files: ReadonlyMap<string, string>, folder: string): Promise<string> {
  const hash = createHash('sha256');
  for (const [place, source] of files) {
    const to = path.join(folder, place);
    fs.mkdirSync(path.dirname(to), { recursive: true });
    const target = fs.createWriteStream(to, { flags: 'wx' });
    if (place !== 'model.onnx') await pipeline(fs.createReadStream(source), target);
    else {
      await pipeline(
        fs.createReadStream(source),
        async function* (chunks: AsyncIterable<Buffer>) {
          for await (const chunk of chunks) {
            hash.update(chunk);
            yield chunk;
          }
        },
        target,
      );
    }
  }
  return hash.digest('hex');
}

async function tryModel(
  folder: string,
  config: Config,
  given: number | undefined,
): Promise<Pick<AddedModel, 'dimensions' | 'pooling' | 'trial'>> {
  const local = readLocalModel(folder, config.OM_LOCAL_POOLING);
  const listed = CATALOGUE.find(({ name, provider }) => provider === 'local' && name === local.name);
  const dimensions = given ?? local.dimensions ?? listed?.dimensions;
  if (dimensions === undefined) {
    throw new EngineError('invalid', 'nothing says how long its vectors are: add its config.json, or --dimensions');
  }
  const embedder = createLocalEmbedder({ ...config, OM_VEC_DIM: dimensions });
  const [first, same, other] = await embedder.embed(TRIAL, { purpose: 'document' });
  return {
    dimensions,
    pooling: local.pooling,
    trial: { alike: cosine(first!, same!), unlike: cosine(first!, other!) },
  };
}
