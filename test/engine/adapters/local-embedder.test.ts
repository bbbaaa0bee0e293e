import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeEach, describe, expect, test } from 'vitest';
import { createEmbedder } from '../../../src/engine/adapters/create-embedder.ts';
import { createLocalEmbedder } from '../../../src/engine/adapters/local-embedder.ts';
import { familyOf } from '../../../src/engine/adapters/model-families.ts';
import { readConfig } from '../../../src/engine/config.ts';
import { describeEmbedder } from '../../conformance/embedder.ts';
import { makeOnnx, type TinyModel } from '../../support/make-onnx.ts';
import { refusedCall } from '../../support/refused-call.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const WIDTH = 64;
const WORDS = ['the', 'kettle', 'is', 'in', 'kitchen', 'paris', 'x', 'canary'];
const [UNKNOWN, FIRST, LAST, FIRST_WORD] = [1, 2, 3, 4];
/** Rows that are not alike; that of padding is large, so that it shows wherever it takes part. */
const TABLE = Array.from({ length: FIRST_WORD + WORDS.length }, (_, token) =>
  Array.from({ length: WIDTH }, (_, d) => (token === 0 ? 1e6 : Math.sin(1 + token * 7.3 + d * (token + 1)))),
);

let folder: string;
beforeEach(() => {
  folder = path.join(tempFolder(), 'tiny-model');
});

function open(settings: Record<string, string> = {}, model: Partial<TinyModel> = {}) {
  makeOnnx({ words: WORDS, table: TABLE, folder, ...model });
  return createLocalEmbedder(configOf(settings));
}

function configOf(settings: Record<string, string> = {}) {
  return readConfig({ OM_EMBEDDINGS: 'local', LOCAL_MODEL_PATH: folder, OM_VEC_DIM: String(WIDTH), ...settings });
}

function tokensOf(text: string): number[] {
  const words = text.split(' ').map((word) => {
    const place = WORDS.indexOf(word.toLowerCase());
    return place === -1 ? UNKNOWN : FIRST_WORD + place;
  });
  return [FIRST, ...words, LAST];
}

/** What the model computes, once more. */
function meanOf(tokens: readonly number[], table = TABLE): number[] {
  const mean = Array.from(
    { length: WIDTH },
    (_, d) => tokens.reduce((sum, token) => sum + table[token]![d]!, 0) / tokens.length,
  );
  const norm = Math.hypot(...mean);
  return mean.map((value) => value / norm);
}

function expectVectors(vectors: readonly Float32Array[], expected: readonly (readonly number[])[]): void {
  expect(vectors).toHaveLength(expected.length);
  vectors.forEach((vector, i) => {
    expect(vector).toHaveLength(WIDTH);
    vector.forEach((value, d) => expect(value, `vector ${i}, dimension ${d}`).toBeCloseTo(expected[i]![d]!, 5));
  });
}

describeEmbedder('local', () => open());

describe('a text becomes', () => {
  const TEXTS = ['The kettle is in the kitchen', 'x', 'Paris is nowhere'];

  test('the mean of its tokens, without the padding of its batch', async () => {
    expectVectors(
      await open().embed(TEXTS, { purpose: 'document' }),
      TEXTS.map((text) => meanOf(tokensOf(text))),
    );
  });

  test('its first token where the model is made so', async () => {
    // Before every token of this table the same one stands, so the tokens that differ must come first.
    const swapped = TABLE.map((row, token) => (token === FIRST ? TABLE[LAST]! : row));
    const vectors = await open({ OM_LOCAL_POOLING: 'cls' }, { table: swapped }).embed(TEXTS, { purpose: 'document' });
    expectVectors(
      vectors,
      TEXTS.map(() => meanOf([LAST])),
    );
  });

  test('what the model itself makes of a whole text', async () => {
    const [vector] = await open({}, { output: 'sentence' }).embed([TEXTS[0]!], { purpose: 'document' });
    expectVectors([vector!], [meanOf(tokensOf(TEXTS[0]!))]);
  });

  test('its first 512 tokens and its end', async () => {
    const long = Array.from({ length: 2_000 }, (_, i) => WORDS[i % 3]!).join(' ');
    const kept = [...tokensOf(long).slice(0, 511), LAST];
    expectVectors(await open().embed([long, 'x'], { purpose: 'document' }), [meanOf(kept), meanOf(tokensOf('x'))]);
  });

  test('the same in a batch of many lengths', async () => {
    const texts = Array.from({ length: 40 }, (_, i) =>
      Array.from({ length: 1 + ((i * 37) % 90) }, (_, j) => WORDS[(i + j) % WORDS.length]!).join(' '),
    );
    expectVectors(
      await open().embed(texts, { purpose: 'document' }),
      texts.map((text) => meanOf(tokensOf(text))),
    );
  });

  test('a question or a passage for a model that knows them apart', async () => {
    folder = path.join(path.dirname(folder), 'e5-small-v2');
    const words = ['query', 'passage', ':', ...WORDS].slice(0, WORDS.length);
    const embedder = open({}, { words });
    const [query] = await embedder.embed(['the'], { purpose: 'query' });
    const [passage] = await embedder.embed(['the'], { purpose: 'document' });
    const after = [FIRST_WORD + 2, FIRST_WORD + 3, LAST];
    expectVectors(
      [query!, passage!],
      [meanOf([FIRST, FIRST_WORD, ...after]), meanOf([FIRST, FIRST_WORD + 1, ...after])],
    );
  });
});

/** The row of each token with `word` among those of every family's model, and rows for the letters of byte pairs. */
const ROWS = Array.from({ length: 200 }, (_, token) =>
  Array.from({ length: WIDTH }, (_, d) => (token === 0 ? 1e6 : Math.sin(1 + token * 7.3 + d * (token + 1)))),
);
const NO_TYPES = ['input_ids', 'attention_mask'];

describe('a model of the family', () => {
  test.each<[string, Partial<TinyModel>, 'mean' | 'cls']>([
    ['all-MiniLM-L6-v2', {}, 'mean'],
    ['bge-small-en-v1.5', {}, 'cls'],
    ['multilingual-e5-small', { tokenizer: 'unigram', inputs: NO_TYPES }, 'mean'],
    ['bge-m3', { tokenizer: 'unigram', inputs: NO_TYPES, weights: 'outside' }, 'cls'],
    ['gte-small', {}, 'mean'],
    ['gte-multilingual-base', { tokenizer: 'unigram', inputs: NO_TYPES }, 'cls'],
    ['nomic-embed-text-v1.5', {}, 'mean'],
    ['embeddinggemma-300m-ONNX', { tokenizer: 'bpe', inputs: NO_TYPES, weights: 'outside' }, 'mean'],
  ])('%s needs no settings but its folder', async (name, shape, pooling) => {
    folder = path.join(path.dirname(folder), name);
    const { document } = familyOf(name).prefixes;
    const words = [...new Set([...document.split(' ').filter(Boolean), ...WORDS])];
    // BERT splits punctuation from words, so prefixes are left to the test of E5 above.
    const isWhole = shape.tokenizer !== undefined || document === '';
    // Before every token of this table the same one stands, so a model by its first token tells nothing of the text.
    const embedder = open({}, { words, table: ROWS, ...shape });
    const text = 'the kettle is in kitchen';
    const [vector] = await embedder.embed([text], { purpose: 'document' });
    const ids = (document + text).split(' ').map((word) => FIRST_WORD + words.indexOf(word));
    if (pooling === 'cls') expectVectors([vector!], [meanOf([FIRST], ROWS)]);
    else if (isWhole) expectVectors([vector!], [meanOf([FIRST, ...ids, LAST], ROWS)]);
    expect(vector).toHaveLength(WIDTH);
  });
});

describe('a folder that describes its model', () => {
  const POOLING_FILE = '1_Pooling/config.json';
  const BY_FIRST = { [POOLING_FILE]: { pooling_mode_cls_token: true, pooling_mode_mean_tokens: false } };

  test('says how vectors are made, and the setting has the last word', async () => {
    const [byFirst] = await open({}, { descriptions: BY_FIRST }).embed(['x'], { purpose: 'document' });
    expectVectors([byFirst!], [meanOf([FIRST])]);
    const [byMean] = await open({ OM_LOCAL_POOLING: 'mean' }).embed(['x'], { purpose: 'document' });
    expectVectors([byMean!], [meanOf(tokensOf('x'))]);
  });

  test('says what stands before a question and a document', async () => {
    const prompts = { query: 'paris ', document: 'kettle ' };
    const embedder = open({}, { descriptions: { 'config_sentence_transformers.json': { prompts } } });
    const [question] = await embedder.embed(['x'], { purpose: 'query' });
    const [document] = await embedder.embed(['x'], { purpose: 'document' });
    expectVectors([question!, document!], [meanOf(tokensOf('paris x')), meanOf(tokensOf('kettle x'))]);
    const other = { 'config_sentence_transformers.json': { prompts: { ...prompts, document: 'canary ' } } };
    expect(open({}, { descriptions: other }).model).not.toBe(embedder.model);
  });

  test.each([
    ['bert', 8],
    ['xlm-roberta', 10],
  ])('of the kind %s with %s positions cuts texts to eight tokens', async (model_type, max_position_embeddings) => {
    const embedder = open({}, { descriptions: { 'config.json': { model_type, max_position_embeddings } } });
    const text = 'the kettle is in the kitchen in paris';
    const [vector] = await embedder.embed([text], { purpose: 'document' });
    expectVectors([vector!], [meanOf([...tokensOf(text).slice(0, 7), LAST])]);
  });

  test('with weights of their own is another space when these change', () => {
    const { model } = open({}, { weights: 'outside' });
    expect(open({}, { weights: 'outside', table: TABLE.map((row) => row.map((v) => 1 - v)) }).model).not.toBe(model);
  });

  test.each<[string, Record<string, object>, RegExp]>([
    ['vectors of another length', { 'config.json': { hidden_size: 384 } }, /makes vectors of 384.*set it to 384/],
    ['a pooling that is not known', { [POOLING_FILE]: { pooling_mode_lasttoken: true } }, /pooling_mode_lasttoken/],
    ['a description that is none', { 'config.json': 7 as unknown as object }, /config.json is no JSON/],
  ])('with %s is refused at the start', (_, descriptions, message) => {
    expect(() => open({}, { descriptions })).toThrowError(
      expect.objectContaining({ code: 'invalid', message: expect.stringMatching(message) as string }),
    );
  });

  test('may make vectors of another length by a layer of its own', async () => {
    const descriptions = {
      'config.json': { hidden_size: 384 },
      'modules.json': [{ type: 'sentence_transformers.models.Dense' }] as object,
    };
    expect(await open({}, { descriptions }).embed(['x'], { purpose: 'document' })).toHaveLength(1);
  });
});

describe('the name of its space', () => {
  test('changes with the model, its tokenizer and how vectors are made, and with nothing else', () => {
    const { model } = open();
    expect(model).toMatch(/^tiny-model@[0-9a-f]{8}$/);
    expect(open().model).toBe(model);
    const others = [
      open({ OM_LOCAL_POOLING: 'cls' }),
      open({}, { table: TABLE.map((row) => row.map((value) => value * 2)) }),
      open({}, { words: WORDS.toReversed() }),
    ].map((embedder) => embedder.model);
    expect(new Set([model, ...others]).size).toBe(4);
  });
});

describe('a start fails', () => {
  test.each(['model.onnx', 'tokenizer.json'])('without %s, and says where it belongs', (name) => {
    open();
    fs.rmSync(path.join(folder, name));
    expect(() => createEmbedder(configOf())).toThrowError(
      expect.objectContaining({ code: 'invalid', message: `LOCAL_MODEL_PATH=${folder}: holds no ${name}` }),
    );
  });

  test('is spared a model in the folder onnx, where some exports have it', async () => {
    open();
    fs.mkdirSync(path.join(folder, 'onnx'));
    fs.renameSync(path.join(folder, 'model.onnx'), path.join(folder, 'onnx', 'model.onnx'));
    expectVectors(await createEmbedder(configOf())!.embed(['x'], { purpose: 'query' }), [meanOf(tokensOf('x'))]);
  });

  test.each([
    [['onnxruntime-web', 'onnxruntime-node'], 'npm install onnxruntime-web @huggingface/tokenizers'],
    [['@huggingface/tokenizers'], 'npm install onnxruntime-web @huggingface/tokenizers'],
  ])('without the packages %j, and says how to install them', (missing, command) => {
    open();
    const { stderr } = openWithout(missing);
    expect(stderr).toContain(`OM_EMBEDDINGS=local needs packages that are not installed: ${command}`);
  });
});

/** In a process that does not find some packages. */
function openWithout(missing: readonly string[]) {
  const source = (name: string) =>
    JSON.stringify(pathToFileURL(path.resolve(import.meta.dirname, '../../../src/engine', name)).href);
  const script = `
    import { registerHooks } from 'node:module';
    registerHooks({ resolve(name, context, next) {
      if (${JSON.stringify(missing)}.includes(name)) throw new Error('no such package');
      return next(name, context);
    } });
    const { readConfig } = await import(${source('config.ts')});
    const { createEmbedder } = await import(${source('adapters/create-embedder.ts')});
    createEmbedder(readConfig(process.env));`;
  return spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    env: { OM_EMBEDDINGS: 'local', LOCAL_MODEL_PATH: folder, OM_VEC_DIM: String(WIDTH) },
    encoding: 'utf8',
  });
}

describe('a call fails', () => {
  test('where the model makes other dimensions, and names them', async () => {
    const error = await refusedCall(open({ OM_VEC_DIM: '128' }).embed(['canary'], { purpose: 'document' }));
    expect(error).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/64 dimensions where OM_VEC_DIM is 128/) as string,
    });
  });

  test.each([
    ['NaN', NaN],
    ['infinity', Infinity],
    ['zeros', 0],
  ])('where the model makes %s', async (_, value) => {
    const embedder = open({}, { table: TABLE.map((row) => row.map(() => value)) });
    const error = await refusedCall(embedder.embed(['canary'], { purpose: 'document' }));
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/zeros|too large/) as string });
  });

  test('where the model wants what we do not have', async () => {
    const embedder = open({}, { extraInput: 'pixel_values' });
    const error = await refusedCall(embedder.embed(['canary'], { purpose: 'document' }));
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/pixel_values/) as string });
  });

  test('while the file is no model, and works once it is the one that it is named after', async () => {
    const embedder = open();
    fs.writeFileSync(path.join(folder, 'model.onnx'), 'no model');
    const error = await refusedCall(embedder.embed(['canary'], { purpose: 'document' }));
    expect(error).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/could not be loaded/) as string,
    });
    makeOnnx({ words: WORDS, table: TABLE, folder });
    expect(await embedder.embed(['x'], { purpose: 'document' })).toHaveLength(1);
  });

  test('after another model took the place of the one that its space is named after', async () => {
    const embedder = open();
    makeOnnx({ words: WORDS, table: TABLE.map((row) => row.map((value) => 1 - value)), folder });
    const error = await refusedCall(embedder.embed(['canary'], { purpose: 'document' }));
    expect(error).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/replaced since the start.*restart/) as string,
    });
  });

  test('once its caller has given it up', async () => {
    const error = await refusedCall(open().embed(['canary'], { purpose: 'query', signal: AbortSignal.abort() }));
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/given up/) as string });
  });
});
