import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { makeOnnx, type TinyModel } from '../support/make-onnx.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

/** `cairn models` with tiny models of the shape that real exports have. */

const WORDS = ['the', 'cat', 'is', 'on', 'sofa', 'couch', 'asleep', 'sleeping', 'interest', 'rates', 'rose'];
const WIDTH = 16;
/** A row of its own for each token, so that sentences with the same words are near. */
const TABLE = Array.from({ length: 4 + WORDS.length }, (_, token) =>
  Array.from({ length: WIDTH }, (_, d) => (d === token % WIDTH ? 1 : 0.01)),
);

let folder: string;
let source: string;
beforeEach(() => {
  folder = tempFolder();
  source = path.join(folder, 'download');
});

const make = (model: Partial<TinyModel> = {}) =>
  makeOnnx({
    words: WORDS,
    table: TABLE,
    folder: source,
    descriptions: { 'config.json': { model_type: 'bert', hidden_size: WIDTH, max_position_embeddings: 512 } },
    ...model,
  });

const cairn = (...args: readonly string[]) =>
  runCairn(['models', ...args], { settings: { OM_DB_PATH: path.join(folder, 'data', 'cairn.sqlite') } });

const models = () => path.join(folder, 'data', 'models');
const installed = () => (fs.existsSync(models()) ? fs.readdirSync(models()) : []);
const digest = () =>
  createHash('sha256')
    .update(fs.readFileSync(path.join(source, 'model.onnx')))
    .digest('hex');

test('lists models with what one chooses them by', async () => {
  const { code, stdout } = await cairn();
  expect(code).toBe(0);
  expect(stdout).toMatch(/^multilingual-e5-small +470 MB +384 +– +about 100 +MIT +huggingface\.co\/\S+$/m);
  expect(stdout).toMatch(/^bge-small-en-v1\.5 +133 MB +384 +51\.7 +English +MIT +huggingface\.co\/\S+$/m);
  expect(stdout).toMatch(/^nomic-embed-text +274 MB +768 +– +English +Apache-2\.0 +ollama pull nomic-embed-text$/m);
});

test('installs a downloaded folder and prints the settings that work', async () => {
  make({ weights: 'outside' });
  const { code, stdout } = await cairn('add', 'all-MiniLM-L6-v2', source, '--sha256', digest());
  expect(code).toBe(0);
  const at = path.join(models(), 'all-MiniLM-L6-v2');
  expect(fs.readdirSync(at).sort()).toEqual(['config.json', 'model.onnx', 'model.onnx_data', 'tokenizer.json']);
  expect(installed()).toEqual(['all-MiniLM-L6-v2']);
  const [, alike, unlike] = /same ([\d.]+), of two about other things ([\d.]+)/.exec(stdout) ?? [];
  expect(Number(alike)).toBeGreaterThan(Number(unlike));
  const settings = Object.fromEntries(
    [...stdout.matchAll(/^(OM_EMBEDDINGS|LOCAL_MODEL_PATH|OM_VEC_DIM)=(.*)$/gm)].map(([, name, value]) => [
      name!,
      value!,
    ]),
  );
  expect(settings).toEqual({ OM_EMBEDDINGS: 'local', LOCAL_MODEL_PATH: at, OM_VEC_DIM: String(WIDTH) });
});

test('takes files one by one, under whatever name the model has', async () => {
  make();
  const renamed = path.join(source, 'model_fp16.onnx');
  fs.renameSync(path.join(source, 'model.onnx'), renamed);
  const { code } = await cairn(
    'add',
    'tiny',
    renamed,
    path.join(source, 'tokenizer.json'),
    '--dimensions',
    String(WIDTH),
  );
  expect(code).toBe(0);
  expect(fs.readdirSync(path.join(models(), 'tiny')).sort()).toEqual(['model.onnx', 'tokenizer.json']);
});

test.each<[string, (args: string[]) => string[], RegExp]>([
  ['whose hash is another', (args) => [...args, '--sha256', 'ab'.repeat(32)], /SHA-256 is [0-9a-f]{64} and not/],
  ['that makes vectors of another length', (args) => [...args, '--dimensions', '17'], /16/],
  ['without a tokenizer', ([add, name]) => [add!, name!, path.join(source, 'model.onnx')], /tokenizer\.json is needed/],
  ['with a file that is none of a model', (args) => [...args, import.meta.filename], /is no file of a model/],
  ['with two models', ([add, name]) => [add!, name!, ...['a', 'b'].map((x) => `${x}.onnx`)], /are both model\.onnx/],
  ['under a name that is a path', ([add, , from]) => [add!, '../x', from!], /name of a model/],
])('refuses a model %s and leaves nothing', async (_, change, message) => {
  make();
  const { code, stderr } = await cairn(...change(['add', 'tiny', source]));
  expect(stderr).toMatch(message);
  expect(code).not.toBe(0);
  expect(installed()).toEqual([]);
});

test('keeps the model that is there', async () => {
  make();
  expect(await cairn('add', 'tiny', source)).toMatchObject({ code: 0 });
  const before = fs.statSync(path.join(models(), 'tiny', 'model.onnx')).mtimeMs;
  const { code, stderr } = await cairn('add', 'tiny', source);
  expect(stderr).toMatch(/exists: remove it first/);
  expect(code).not.toBe(0);
  expect(fs.statSync(path.join(models(), 'tiny', 'model.onnx')).mtimeMs).toBe(before);
});
