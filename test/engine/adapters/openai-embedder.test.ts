import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createEmbedder } from '../../../src/engine/adapters/create-embedder.ts';
import { createHashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import { createOpenAiEmbedder } from '../../../src/engine/adapters/openai-embedder.ts';
import { readConfig } from '../../../src/engine/config.ts';
import type { EngineError } from '../../../src/engine/errors.ts';
import { describeEmbedder } from '../../conformance/embedder.ts';
import {
  startFakeProvider,
  type FakeMode,
  type FakeModeOptions,
  type FakeProvider,
} from '../../support/fake-provider.ts';
import { refusedCall } from '../../support/refused-call.ts';

const DIMENSIONS = 256;
const KEY = 'sk-canary-key-0123456789';
const TEXTS = ['canary text one', 'canary text two', 'canary text three'];

let provider: FakeProvider;
beforeEach(async () => {
  provider = await startFakeProvider({ dimensions: DIMENSIONS });
});
afterEach(async () => {
  vi.unstubAllGlobals();
  await provider.close();
});

function open(settings: Record<string, string> = {}) {
  return createOpenAiEmbedder(
    readConfig({
      OM_EMBEDDINGS: 'openai',
      OM_OPENAI_BASE_URL: provider.url,
      OPENAI_API_KEY: KEY,
      OM_VEC_DIM: String(DIMENSIONS),
      OM_OPENAI_MODEL: 'local-model',
      OM_EMBED_BATCH_TEXTS: '8',
      ...settings,
    }),
  );
}

describeEmbedder('openai', () => open());

describe('the request', () => {
  test('names model, key, texts and plain floats, and no dimensions to a model that has one size', async () => {
    await open().embed(TEXTS, { purpose: 'document' });
    expect(provider.calls).toHaveLength(1);
    expect(provider.calls[0]!.body).toEqual({ model: 'local-model', input: TEXTS, encoding_format: 'float' });
    expect(provider.calls[0]!.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  test('asks a text-embedding-3 model for the configured dimensions', async () => {
    await open({ OM_OPENAI_MODEL: 'text-embedding-3-large' }).embed(TEXTS, { purpose: 'document' });
    expect(provider.calls[0]!.body['dimensions']).toBe(DIMENSIONS);
  });

  test('sends no authorization where no key is set', async () => {
    await open({ OPENAI_API_KEY: '' }).embed(TEXTS, { purpose: 'document' });
    expect(provider.calls[0]!.headers.authorization).toBeUndefined();
  });

  test('tells questions from documents to a model that was trained so', async () => {
    const embedder = open({ OM_OPENAI_MODEL: 'text-embedding-nomic-embed-text-v1.5' });
    await embedder.embed(['text'], { purpose: 'document' });
    await embedder.embed(['text'], { purpose: 'query' });
    expect(provider.calls.map(({ texts }) => texts)).toEqual([['search_document: text'], ['search_query: text']]);
  });

  test('takes base64 from OpenAI itself', async () => {
    const direct = await open().embed(TEXTS, { purpose: 'document' });
    const realFetch = fetch;
    vi.stubGlobal('fetch', (url: string, init: RequestInit) =>
      realFetch(url.replace('https://api.openai.com/v1', provider.url), init),
    );
    const vectors = await open({ OM_OPENAI_BASE_URL: 'https://api.openai.com/v1' }).embed(TEXTS, {
      purpose: 'document',
    });
    expect(provider.calls[1]!.body['encoding_format']).toBe('base64');
    expect(vectors).toEqual(direct);
  });
});

describe('a good reply', () => {
  test('brings the vectors that the provider made', async () => {
    const expected = await createHashedEmbedder({ dimensions: DIMENSIONS }).embed(TEXTS, { purpose: 'document' });
    const vectors = await open().embed(TEXTS, { purpose: 'document' });
    vectors.forEach((vector, i) => vector.forEach((value, d) => expect(value).toBeCloseTo(expected[i]![d]!, 6)));
  });

  test.each<FakeMode>(['reordered', 'index_zero_omitted', 'slow'])('is understood when it comes %s', async (mode) => {
    const embedder = open();
    const expected = await embedder.embed(TEXTS, { purpose: 'document' });
    provider.setMode(mode);
    expect(await embedder.embed(TEXTS, { purpose: 'document' })).toEqual(expected);
  });

  test('may fill the largest batch', async () => {
    const texts = Array.from({ length: 8 }, (_, i) => `text ${i}`);
    expect(await open().embed(texts, { purpose: 'document' })).toHaveLength(8);
  });
});

describe('a bad reply', () => {
  test.each<[FakeMode, RegExp]>([
    ['html', /no list/],
    ['no_list', /no list/],
    ['empty', /no list|JSON/],
    ['truncated', /JSON/],
    ['nan', /JSON/],
    ['null', /no number/],
    ['strings', /no number/],
    ['infinite', /too large/],
    ['zeros', /zeros/],
    ['wrong_dimension', /255 dimensions where OM_VEC_DIM is 256/],
    ['no_vector', /no vector/],
    ['short', /2 vectors for 3 texts/],
    ['extra', /4 vectors for 3 texts/],
    ['index_repeated', /which vector/],
    ['index_outside', /which vector/],
    ['reset', /cut off/],
    ['cut', /cut off/],
    ['redirect', /HTTP 307/],
  ])('of kind %s is refused whole', async (mode, message) => {
    provider.setMode(mode);
    const error = await refusedCall(open().embed(TEXTS, { purpose: 'document' }));
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(message) as string });
    expect(provider.calls).toHaveLength(1);
  });

  test.each<[FakeMode, RegExp]>([
    ['hang', /OM_EMBED_TIMEOUT_MS/],
    ['drip', /OM_EMBED_TIMEOUT_MS/],
    ['drip_error', /OM_EMBED_TIMEOUT_MS/],
    ['huge', /longer than \d+ bytes/],
  ])('that would never end (%s) is cut off', async (mode, message) => {
    provider.setMode(mode);
    const arrived = provider.nextCall();
    const timeoutMs = mode === 'huge' ? 60_000 : 500;
    const error = await refusedCall(
      open({ OM_EMBED_TIMEOUT_MS: String(timeoutMs) }).embed(TEXTS, { purpose: 'document' }),
    );
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(message) as string });
    await (
      await arrived
    ).ended;
  });

  test('leaves the embedder usable', async () => {
    const embedder = open();
    provider.setMode('reset', { times: 1 });
    await refusedCall(embedder.embed(TEXTS, { purpose: 'document' }));
    expect(await embedder.embed(TEXTS, { purpose: 'document' })).toHaveLength(3);
  });
});

describe('an error reply', () => {
  test.each<[FakeMode, FakeModeOptions, Partial<EngineError>]>([
    ['rate_limited', {}, { code: 'rate_limited', retryAfterMs: 1_000 }],
    ['rate_limited', { headers: { 'retry-after': '7' } }, { code: 'rate_limited', retryAfterMs: 7_000 }],
    [
      'rate_limited',
      { headers: { 'retry-after': '7', 'retry-after-ms': '250' } },
      { code: 'rate_limited', retryAfterMs: 250 },
    ],
    ['rate_limited', { headers: { 'retry-after': '0' } }, { code: 'rate_limited', retryAfterMs: 1_000 }],
    ['rate_limited', { headers: { 'retry-after-ms': '1' } }, { code: 'rate_limited', retryAfterMs: 100 }],
    ['rate_limited', { headers: { 'retry-after': 'soon' } }, { code: 'rate_limited', retryAfterMs: 1_000 }],
    ['rate_limited', { headers: { 'retry-after': '-5' } }, { code: 'rate_limited', retryAfterMs: 1_000 }],
    ['rate_limited', { headers: { 'retry-after': '99999999' } }, { code: 'rate_limited', retryAfterMs: 3_600_000 }],
    ['status', { status: 500 }, { code: 'unavailable' }],
    ['status', { status: 503, headers: { 'retry-after': '2' } }, { code: 'unavailable', retryAfterMs: 2_000 }],
    ['status', { status: 401 }, { code: 'unavailable', message: expect.stringMatching(/OPENAI_API_KEY/) as string }],
    ['status', { status: 403 }, { code: 'unavailable', message: expect.stringMatching(/OPENAI_API_KEY/) as string }],
    ['status', { status: 404 }, { code: 'unavailable', message: expect.stringMatching(/OM_OPENAI_MODEL/) as string }],
    ['status', { status: 400 }, { code: 'invalid' }],
    ['status', { status: 400, param: 'input' }, { code: 'invalid' }],
    ['status', { status: 413 }, { code: 'invalid' }],
    ['status', { status: 422 }, { code: 'invalid' }],
    ...[400, 422].map<[FakeMode, FakeModeOptions, Partial<EngineError>]>((status) => [
      'echo_page',
      { status },
      { code: 'unavailable', message: expect.stringMatching(/OM_OPENAI_BASE_URL/) as string },
    ]),
    ['echo_page', { status: 413 }, { code: 'invalid' }],
    [
      'status',
      { status: 400, param: 'dimensions' },
      { code: 'unavailable', message: expect.stringMatching(/OM_VEC_DIM/) as string },
    ],
  ])('%s %o', async (mode, options, expected) => {
    provider.setMode(mode, options);
    const error = await refusedCall(open().embed(TEXTS, { purpose: 'document' }));
    expect(error).toMatchObject(expected);
    expect(provider.calls, 'a call is one request').toHaveLength(1);
  });

  test('may name a date to wait for', async () => {
    provider.setMode('rate_limited', { headers: { 'retry-after': new Date(Date.now() + 1_800_000).toUTCString() } });
    const error = await refusedCall(open().embed(TEXTS, { purpose: 'document' }));
    expect(error.retryAfterMs).toBeGreaterThan(1_500_000);
    expect(error.retryAfterMs).toBeLessThanOrEqual(1_800_000);
  });

  test.each([400, 401, 429, 500])('of status %i that quotes texts and key is not passed on', async (status) => {
    provider.setMode('echo', { status });
    await refusedCall(open().embed(TEXTS, { purpose: 'document' }));
  });

  test('names the cause when nobody listens', async () => {
    await provider.close();
    const error = await refusedCall(open().embed(TEXTS, { purpose: 'document' }));
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/ECONNREFUSED/) as string });
    provider = await startFakeProvider({ dimensions: DIMENSIONS });
  });
});

describe('an abort', () => {
  test('ends the call and its connection', async () => {
    provider.setMode('hang');
    const controller = new AbortController();
    const arrived = provider.nextCall();
    const embedding = refusedCall(open().embed(TEXTS, { purpose: 'query', signal: controller.signal }));
    const call = await arrived;
    controller.abort();
    expect(await embedding).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/given up/) as string,
    });
    await call.ended;
  });

  test('before the call sends nothing', async () => {
    const error = await refusedCall(open().embed(TEXTS, { purpose: 'query', signal: AbortSignal.abort() }));
    expect(error.code).toBe('unavailable');
    expect(provider.calls).toHaveLength(0);
  });
});

describe('createEmbedder', () => {
  test.each([
    ['synthetic', 'synthetic'],
    ['openai', 'openai'],
  ])('OM_EMBEDDINGS=%s opens the embedder of that name', (OM_EMBEDDINGS, provider) => {
    expect(createEmbedder(readConfig({ OM_EMBEDDINGS, OPENAI_API_KEY: KEY }))).toMatchObject({
      provider,
      dimensions: 768,
    });
  });

  test('OM_EMBEDDINGS=none opens none', () => {
    expect(createEmbedder(readConfig({ OM_EMBEDDINGS: 'none' }))).toBeNull();
  });
});
