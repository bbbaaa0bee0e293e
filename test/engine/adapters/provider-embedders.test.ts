import { createHash, createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createEmbedder } from '../../../src/engine/adapters/create-embedder.ts';
import { createHashedEmbedder } from '../../../src/engine/adapters/hashed-embedder.ts';
import { readConfig } from '../../../src/engine/config.ts';
import type { EngineError } from '../../../src/engine/errors.ts';
import { createEmbeddingGatherer } from '../../../src/engine/providers/embedding-gatherer.ts';
import type { Embedder, ProviderReply } from '../../../src/engine/ports.ts';
import { describeEmbedder } from '../../conformance/embedder.ts';
import {
  startFakeProvider,
  type FakeCall,
  type FakeMode,
  type FakeModeOptions,
  type FakeProvider,
} from '../../support/fake-provider.ts';
import { refusedCall } from '../../support/refused-call.ts';

const DIMENSIONS = 256;
const TEXTS = ['canary text one', 'canary text two', 'canary text three'];

let fake: FakeProvider;
beforeEach(async () => {
  fake = await startFakeProvider({ dimensions: DIMENSIONS });
});
afterEach(() => fake.close());

type Provider = 'gemini' | 'ollama' | 'bedrock';

/** What each needs to reach the fake provider; every secret is marked for `refusedCall`. */
const SETTINGS: Record<Provider, () => Record<string, string>> = {
  gemini: () => ({ OM_GEMINI_BASE_URL: `${fake.origin}/v1beta`, GEMINI_API_KEY: 'canary-key' }),
  ollama: () => ({ OLLAMA_URL: fake.origin }),
  bedrock: () => ({
    OM_BEDROCK_BASE_URL: fake.origin,
    AWS_REGION: 'eu-central-1',
    AWS_ACCESS_KEY_ID: 'canary-id',
    AWS_SECRET_ACCESS_KEY: 'canary-secret',
  }),
};

function open(provider: Provider, settings: Record<string, string> = {}): Embedder {
  return createEmbedder(
    readConfig({
      OM_EMBEDDINGS: provider,
      OM_VEC_DIM: String(DIMENSIONS),
      OM_EMBED_BATCH_TEXTS: '8',
      ...SETTINGS[provider](),
      ...settings,
    }),
  )!;
}

async function callOf(provider: Provider, settings?: Record<string, string>): Promise<FakeCall> {
  await open(provider, settings).embed([TEXTS[0]!], { purpose: 'document' });
  return fake.calls[0]!;
}

describe.each<Provider>(['gemini', 'ollama', 'bedrock'])('%s', (provider) => {
  describeEmbedder(provider, () => open(provider));

  const embed = (settings?: Record<string, string>, texts = TEXTS) =>
    open(provider, settings).embed(texts, { purpose: 'document' });
  const one = TEXTS.slice(0, 1);

  test('brings the vectors that the provider made, whatever their length', async () => {
    const expected = await createHashedEmbedder({ dimensions: DIMENSIONS }).embed(TEXTS, { purpose: 'document' });
    for (const mode of ['ok', 'unnormalised', 'slow'] as const) {
      fake.setMode(mode);
      // Not one that gets more than the text.
      (await embed({ OM_OLLAMA_MODEL: 'all-minilm' })).forEach((vector, i) =>
        vector.forEach((value, d) => expect(value, mode).toBeCloseTo(expected[i]![d]!, 6)),
      );
    }
  });

  test('names itself and its model as settings do', () => {
    const model = `OM_${provider.toUpperCase()}_MODEL`;
    expect(open(provider, { [model]: 'a-model' })).toMatchObject({
      provider,
      model: 'a-model',
      dimensions: DIMENSIONS,
    });
  });

  test('tells of every reply, with what it counted', async () => {
    const replies: ProviderReply[] = [];
    const options = { purpose: 'query', onReply: (reply: ProviderReply) => void replies.push(reply) } as const;
    fake.setMode('status', { times: 1, status: 503, headers: { 'x-ratelimit-remaining-requests': '0' } });
    const embedder = open(provider);
    await refusedCall(embedder.embed(one, options));
    await embedder.embed(one, options);
    expect(replies.map(({ tokens }) => tokens)).toEqual([undefined, 7]);
    expect(replies[0]!.headers.get('x-ratelimit-remaining-requests')).toBe('0');
  });

  const BAD: [FakeMode, RegExp][] = [
    ['html', /JSON/],
    ['empty', /JSON/],
    ['truncated', /JSON/],
    ['nan', /JSON/],
    ['null', /no number/],
    ['strings', /no number/],
    ['infinite', /too large/],
    ['zeros', /zeros/],
    ['wrong_dimension', /255 dimensions where OM_VEC_DIM is 256: set it/],
    ['no_vector', /no vector/],
    ['no_list', /no list|no vector/],
    ['reset', /cut off/],
    ['cut', /cut off/],
    ['redirect', /HTTP 307/],
  ];
  test.each<[FakeMode, RegExp]>(BAD)('refuses a reply of kind %s', async (mode, message) => {
    fake.setMode(mode);
    const error = await refusedCall(embed({}, one));
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(message) as string });
    expect(fake.calls).toHaveLength(1);
  });

  const COUNTS: [FakeMode, RegExp][] = [
    ['short', /2 vectors for 3 texts/],
    ['extra', /4 vectors for 3 texts/],
  ];
  test.skipIf(provider === 'bedrock').each<[FakeMode, RegExp]>(COUNTS)('refuses a %s batch', async (mode, message) => {
    fake.setMode(mode);
    const error = await refusedCall(embed());
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(message) as string });
  });

  test.each<[FakeMode, RegExp]>([
    ['hang', /OM_EMBED_TIMEOUT_MS/],
    ['drip', /OM_EMBED_TIMEOUT_MS/],
    ['drip_error', /OM_EMBED_TIMEOUT_MS/],
    ['huge', /longer than \d+ bytes/],
  ])('cuts off a reply that would never end (%s)', async (mode, message) => {
    fake.setMode(mode);
    const arrived = fake.nextCall();
    const error = await refusedCall(embed({ OM_EMBED_TIMEOUT_MS: mode === 'huge' ? '60000' : '500' }, one));
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(message) as string });
    await (
      await arrived
    ).ended;
  });

  test.each<[FakeMode, FakeModeOptions, Partial<EngineError>]>([
    ['rate_limited', {}, { code: 'rate_limited', retryAfterMs: 1_000 }],
    ['rate_limited', { headers: { 'retry-after': '7' } }, { code: 'rate_limited', retryAfterMs: 7_000 }],
    ['status', { status: 500 }, { code: 'unavailable' }],
    ['status', { status: 503, headers: { 'retry-after': '2' } }, { code: 'unavailable', retryAfterMs: 2_000 }],
    ['status', { status: 400 }, { code: 'invalid' }],
    ['status', { status: 413 }, { code: 'invalid' }],
    ['echo_page', { status: 400 }, { code: 'unavailable', message: expect.stringMatching(/check \w+/) as string }],
    ['echo_page', { status: 422 }, { code: 'unavailable', message: expect.stringMatching(/check \w+/) as string }],
    ['echo_page', { status: 413 }, { code: 'invalid' }],
    ['status', { status: 401 }, { code: 'unavailable', message: expect.stringMatching(/check \w+/) as string }],
    ['status', { status: 403 }, { code: 'unavailable', message: expect.stringMatching(/check \w+/) as string }],
    ['status', { status: 404 }, { code: 'unavailable', message: expect.stringMatching(/_MODEL/) as string }],
  ])('%s %o', async (mode, options, expected) => {
    fake.setMode(mode, options);
    expect(await refusedCall(embed({}, one))).toMatchObject(expected);
    expect(fake.calls, 'a call is one request').toHaveLength(1);
  });

  test.each([400, 401, 404, 429, 500])('passes on nothing of an error of status %i that quotes', async (status) => {
    fake.setMode('echo', { status });
    await refusedCall(embed({}, one));
  });

  test('names the cause when nobody listens', async () => {
    await fake.close();
    const error = await refusedCall(embed({}, one));
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/ECONNREFUSED/) as string });
    fake = await startFakeProvider({ dimensions: DIMENSIONS });
  });

  test('ends a call and its connection when its caller gives up', async () => {
    fake.setMode('hang');
    const controller = new AbortController();
    const arrived = fake.nextCall();
    const { signal } = controller;
    const embedding = refusedCall(open(provider).embed(one, { purpose: 'query', signal }));
    const call = await arrived;
    controller.abort();
    expect(await embedding).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/given up/) as string,
    });
    await call.ended;
  });

  test('sends nothing for a caller who has given up', async () => {
    await refusedCall(open(provider).embed(TEXTS, { purpose: 'query', signal: AbortSignal.abort() }));
    expect(fake.calls).toHaveLength(0);
  });

  test('a text that is refused fails alone', async () => {
    fake.setMode('refuse_text');
    const embedder = open(provider);
    const gatherer = createEmbeddingGatherer(embedder, {
      maxBatchTexts: embedder.maxBatchTexts,
      maxBatchTokens: embedder.maxBatchTokens,
      lingerMs: 1,
      concurrency: 4,
    });
    const texts = ['one', 'two', 'REFUSED', 'four', 'five'];
    const outcomes = await Promise.allSettled(texts.map((text) => gatherer.embed(text, 'document')));
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ]);
    expect(outcomes[2]).toMatchObject({ reason: { code: 'invalid' } });
  });
});

describe('gemini', () => {
  test('is asked for documents in one batch, with the key in a header', async () => {
    await open('gemini').embed(TEXTS, { purpose: 'document' });
    expect(fake.calls).toHaveLength(1);
    const [{ path, body, headers }] = fake.calls as [FakeCall];
    expect(path).toBe('/v1beta/models/gemini-embedding-001:batchEmbedContents');
    expect(headers['x-goog-api-key']).toBe('canary-key');
    expect(body).toEqual({
      requests: TEXTS.map((text) => ({
        model: 'models/gemini-embedding-001',
        content: { parts: [{ text }] },
        taskType: 'RETRIEVAL_DOCUMENT',
        outputDimensionality: DIMENSIONS,
      })),
    });
  });

  test('is told that a question is one', async () => {
    await open('gemini').embed(['q'], { purpose: 'query' });
    expect(fake.calls[0]!.body).toMatchObject({ requests: [{ taskType: 'RETRIEVAL_QUERY' }] });
  });

  test('takes at most 100 texts a call, and a model with its full name', () => {
    const embedder = open('gemini', { OM_EMBED_BATCH_TEXTS: '500', OM_GEMINI_MODEL: 'models/gemini-embedding-001' });
    expect(embedder).toMatchObject({ maxBatchTexts: 100, model: 'gemini-embedding-001' });
  });

  const errorOf = (status: string, details: object[] = [], message = '') => ({ error: { status, message, details } });
  test.each<[string, FakeModeOptions, Partial<EngineError>]>([
    [
      'a wrong key, which it blames on the request',
      { status: 400, error: errorOf('INVALID_ARGUMENT', [{ reason: 'API_KEY_INVALID' }]) },
      { code: 'unavailable', message: expect.stringMatching(/GEMINI_API_KEY/) as string },
    ],
    [
      'an account that is not set up',
      { status: 400, error: errorOf('FAILED_PRECONDITION') },
      { code: 'unavailable', message: expect.stringMatching(/GEMINI_API_KEY/) as string },
    ],
    [
      'dimensions that the model does not make',
      { status: 400, error: errorOf('INVALID_ARGUMENT', [], 'output_dimensionality must be …') },
      { code: 'unavailable', message: expect.stringMatching(/OM_VEC_DIM/) as string },
    ],
    [
      'a pause that it names in the body',
      { status: 429, error: errorOf('RESOURCE_EXHAUSTED', [{ '@type': 'Help' }, { retryDelay: '37.5s' }]) },
      { code: 'rate_limited', retryAfterMs: 37_500 },
    ],
    [
      'a pause of nothing',
      { status: 429, error: errorOf('RESOURCE_EXHAUSTED', [{ retryDelay: '0s' }]) },
      { code: 'rate_limited', retryAfterMs: 1_000 },
    ],
    [
      'a pause of days',
      { status: 429, error: errorOf('RESOURCE_EXHAUSTED', [{ retryDelay: '999999s' }]) },
      { code: 'rate_limited', retryAfterMs: 3_600_000 },
    ],
  ])('is understood: %s', async (_, options, expected) => {
    fake.setMode('status', options);
    expect(await refusedCall(open('gemini').embed(TEXTS, { purpose: 'document' }))).toMatchObject(expected);
  });
});

describe('ollama', () => {
  test('is asked in one batch to refuse what is too long and to keep the model', async () => {
    await open('ollama', { OM_OLLAMA_MODEL: 'all-minilm' }).embed(TEXTS, { purpose: 'document' });
    expect(fake.calls).toHaveLength(1);
    expect(fake.calls[0]).toMatchObject({ path: '/api/embed' });
    expect(fake.calls[0]!.body).toEqual({ model: 'all-minilm', input: TEXTS, truncate: false, keep_alive: '30m' });
  });

  test.each([
    ['nomic-embed-text', 'search_document: ', 'search_query: '],
    ['nomic-embed-text:v1.5', 'search_document: ', 'search_query: '],
    ['embeddinggemma', 'title: none | text: ', 'task: search result | query: '],
    ['mxbai-embed-large', '', 'Represent this sentence for searching relevant passages: '],
    ['all-minilm', '', ''],
  ])('%s gets before a document %j and before a question %j', async (model, document, query) => {
    const embedder = open('ollama', { OM_OLLAMA_MODEL: model });
    await embedder.embed(['text'], { purpose: 'document' });
    await embedder.embed(['text'], { purpose: 'query' });
    expect(fake.calls.map(({ body }) => body['input'])).toEqual([[`${document}text`], [`${query}text`]]);
  });

  test.each<[string, FakeModeOptions, Partial<EngineError>]>([
    [
      'a model that is not there',
      { status: 404, error: { error: 'model "nomic-embed-text" not found, try pulling it first' } },
      { code: 'unavailable', message: expect.stringMatching(/ollama pull nomic-embed-text/) as string },
    ],
    [
      'a text that is too long',
      { status: 400, error: { error: 'the input length exceeds the context length' } },
      { code: 'invalid', message: expect.stringMatching(/too long/) as string },
    ],
    [
      'the same from older versions',
      { status: 500, error: { error: 'input length exceeds maximum context length' } },
      { code: 'invalid', message: expect.stringMatching(/too long/) as string },
    ],
    [
      'a model that does not embed',
      { status: 400, error: { error: '"llama" does not support embeddings' } },
      { code: 'unavailable', message: expect.stringMatching(/OM_OLLAMA_MODEL/) as string },
    ],
  ])('is understood: %s', async (_, options, expected) => {
    fake.setMode('status', options);
    expect(await refusedCall(open('ollama').embed(TEXTS, { purpose: 'document' }))).toMatchObject(expected);
  });
});

describe('bedrock', () => {
  test('is asked for one text a request', async () => {
    const embedder = open('bedrock');
    await embedder.embed(TEXTS, { purpose: 'document' });
    expect(fake.calls.map(({ path }) => path)).toEqual(TEXTS.map(() => '/model/amazon.titan-embed-text-v2%3A0/invoke'));
    expect(fake.calls.map(({ body }) => body).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))).toEqual(
      TEXTS.toSorted().map((inputText) => ({ inputText, dimensions: DIMENSIONS, normalize: true })),
    );
    expect(embedder.maxBatchTexts).toBe(1);
  });

  test('has a few requests under way at once, and none after one failed', async () => {
    const release = fake.hold();
    fake.setMode('status', { status: 500 });
    const texts = Array.from({ length: 20 }, (_, i) => `text ${i}`);
    const embedding = refusedCall(open('bedrock').embed(texts, { purpose: 'document' }));
    while (fake.calls.length < 4) await fake.nextCall();
    release();
    await embedding;
    // As long as all the others would take.
    fake.setMode('ok');
    for (let i = 0; i < texts.length; i += 1) await open('bedrock').embed(['after'], { purpose: 'document' });
    expect(fake.calls.filter(({ texts: [text] }) => text !== 'after').length).toBeLessThan(10);
  });

  test.each<Record<string, string>>([
    {},
    { AWS_SESSION_TOKEN: 'canary-session-token' },
    { OM_BEDROCK_MODEL: 'arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/a1 (b)' },
  ])('gets a signature of what arrives: %o', async (settings) => {
    const call = await callOf('bedrock', settings);
    expect(call.headers['x-amz-security-token']).toBe(settings['AWS_SESSION_TOKEN']);
    expect(call.headers.authorization).toBe(signatureOf(call));
  });

  test('gets a Bedrock API key as it is', async () => {
    const call = await callOf('bedrock', { AWS_BEARER_TOKEN_BEDROCK: 'canary-bearer' });
    expect(call.headers.authorization).toBe('Bearer canary-bearer');
    expect(call.headers).not.toHaveProperty('x-amz-date');
  });

  const namedBy = (type: string, status: number, message = ''): FakeModeOptions => ({
    status,
    error: { message },
    headers: { 'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/` },
  });
  test.each<[FakeModeOptions, Partial<EngineError>]>([
    [namedBy('ThrottlingException', 429), { code: 'rate_limited', retryAfterMs: 1_000 }],
    [namedBy('ServiceQuotaExceededException', 400), { code: 'rate_limited', retryAfterMs: 1_000 }],
    [namedBy('ModelNotReadyException', 429), { code: 'rate_limited' }],
    [namedBy('ValidationException', 400, 'Too many input tokens'), { code: 'invalid' }],
    [
      namedBy('ValidationException', 400, 'The provided model identifier is invalid.'),
      { code: 'unavailable', message: expect.stringMatching(/OM_BEDROCK_MODEL/) as string },
    ],
    [
      namedBy('ExpiredTokenException', 400),
      { code: 'unavailable', message: expect.stringMatching(/AWS_ACCESS_KEY_ID/) as string },
    ],
    [
      namedBy('AccessDeniedException', 403),
      { code: 'unavailable', message: expect.stringMatching(/OM_BEDROCK_MODEL/) as string },
    ],
    [namedBy('ModelTimeoutException', 408), { code: 'unavailable' }],
  ])('is understood: %o', async (options, expected) => {
    fake.setMode('status', options);
    expect(await refusedCall(open('bedrock').embed(['text'], { purpose: 'document' }))).toMatchObject(expected);
  });
});

/** The `Authorization` that Signature Version 4 demands of a request, from AWS's description of it. */
function signatureOf({ path, json, headers }: FakeCall): string {
  const hmac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest();
  const hash = (data: string) => createHash('sha256').update(data).digest('hex');
  const date = headers['x-amz-date'] as string;
  const signed = ['host', 'x-amz-date', 'x-amz-security-token'].filter((name) => headers[name] !== undefined);
  const canonical = [
    'POST',
    path.split('/').map(encodeStrictly).join('/'),
    '',
    ...signed.map((name) => `${name}:${headers[name] as string}`),
    '',
    signed.join(';'),
    hash(json),
  ].join('\n');
  const scope = `${date.slice(0, 8)}/eu-central-1/bedrock/aws4_request`;
  const key = scope.split('/').reduce<string | Buffer>((parent, part) => hmac(parent, part), 'AWS4canary-secret');
  const signature = hmac(key, ['AWS4-HMAC-SHA256', date, scope, hash(canonical)].join('\n')).toString('hex');
  return `AWS4-HMAC-SHA256 Credential=canary-id/${scope}, SignedHeaders=${signed.join(';')}, Signature=${signature}`;
}

/** As RFC 3986 has it: of what `encodeURIComponent` leaves alone, AWS encodes some too. */
function encodeStrictly(part: string): string {
  return encodeURIComponent(part).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
}
