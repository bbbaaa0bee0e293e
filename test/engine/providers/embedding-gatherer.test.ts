import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { AsyncLocalStorage } from 'node:async_hooks';
import fs from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import os from 'node:os';
import path from 'node:path';
import { createOpenAiEmbedder } from '../../../src/engine/adapters/openai-embedder.ts';
import { readConfig } from '../../../src/engine/config.ts';
import { openProviderBudget } from '../../../src/engine/control/provider-budget.ts';
import { isEngineError } from '../../../src/engine/errors.ts';
import { PROBE_TEXT, type ProviderCall } from '../../../src/engine/providers/call-provider.ts';
import { embedTexts, type EmbeddedTexts } from '../../../src/engine/providers/embed-texts.ts';
import { MIN_BOUND, createBatchBound, MAX_REFUSALS } from '../../../src/engine/providers/batch-bound.ts';
import { createEmbeddingGatherer, type GathererOptions } from '../../../src/engine/providers/embedding-gatherer.ts';
import { systemClock, type Embedder, type VectorPrecision } from '../../../src/engine/ports.ts';
import {
  appendEmbedLog,
  countEmbeddingsOnlyOf,
  countEmbedLogs,
  findModelNumber,
  listEmbedLogs,
  listModels,
  modelNumber,
  purgeEmbedLogs,
} from '../../../src/engine/store/embeddings.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { listUsage } from '../../../src/engine/store/provider-usage.ts';
import { cosine } from '../../../src/engine/store/vector-encoding.ts';
import { STORED_BYTES } from '../../../src/engine/store/vector-parts.ts';
import { deleteVectors, insertVector } from '../../../src/engine/store/vectors.ts';
import { estimateTokens } from '../../../src/engine/text/tokens.ts';
import { startFakeProvider, type FakeProvider } from '../../support/fake-provider.ts';

let provider: FakeProvider;
let embedder: Embedder;
let reported: ProviderCall[];

beforeEach(async () => {
  provider = await startFakeProvider({ dimensions: 256 });
  embedder = createOpenAiEmbedder(
    readConfig({
      OM_EMBEDDINGS: 'openai',
      OM_OPENAI_BASE_URL: provider.url,
      OM_VEC_DIM: '256',
      OM_OPENAI_MODEL: 'fake',
    }),
  );
  reported = [];
});
afterEach(() => provider.close());

function gather(options: Partial<GathererOptions> = {}) {
  return createEmbeddingGatherer(embedder, {
    maxBatchTexts: 8,
    maxBatchTokens: 1_000,
    lingerMs: 5,
    concurrency: 2,
    onCall: (call) => reported.push(call),
    ...options,
  });
}

const pauseOf = (error: unknown) => (isEngineError(error, 'rate_limited') ? (error.retryAfterMs ?? 0) : 0);
const codeOf = (error: unknown) => (isEngineError(error) ? error.code : String(error));
const numbered = (count: number) => Array.from({ length: count }, (_, i) => `text number ${i}`);
const batchSizes = () => provider.calls.map((call) => call.texts.length);

describe('gathering', () => {
  test('texts of concurrent callers share calls, and each caller gets its own vector', async () => {
    const texts = numbered(20);
    const gatherer = gather();
    const vectors = await Promise.all(texts.map((text) => gatherer.embed(text, 'document')));
    expect(batchSizes()).toEqual([8, 8, 4]);
    expect(vectors).toEqual(await embedder.embed(texts, { purpose: 'document' }));
  });

  test('a full batch does not linger, and the rest does', async () => {
    const gatherer = gather({ lingerMs: 2 ** 30 });
    const arrived = provider.nextCall();
    const full = gatherer.embedAll(numbered(8), 'document');
    expect((await arrived).texts).toHaveLength(8);
    await full;
    const controller = new AbortController();
    const lonely = gatherer.embed('one more', 'document', controller.signal);
    await gatherer.embed('a query', 'query');
    expect(batchSizes(), 'the query went by itself').toEqual([8, 1]);
    controller.abort();
    await expect(lonely).rejects.toMatchObject({ code: 'unavailable' });
  });

  test('batches are cut by tokens too, and a text over the limit travels alone', async () => {
    const text = (i: number, words: number) => `${i} ${'word '.repeat(words)}`;
    const texts = [text(1, 30), text(2, 30), text(3, 300), text(4, 30)];
    await gather({ maxBatchTokens: 100 }).embedAll(texts, 'document');
    expect(provider.calls.map((call) => call.texts.map((sent) => texts.indexOf(sent)))).toEqual([[0, 1], [2], [3]]);
    for (const { texts: sent } of provider.calls) {
      if (sent.length > 1) expect(sent.reduce((sum, one) => sum + estimateTokens(one), 0)).toBeLessThanOrEqual(100);
    }
  });

  test('equal texts of a batch are sent once', async () => {
    const [a, b, again] = await gather().embedAll(['same', 'other', 'same'], 'document');
    expect(provider.calls.map((call) => call.texts)).toEqual([['same', 'other']]);
    expect(again).toEqual(a);
    expect(b).not.toEqual(a);
  });

  test('queries and documents never share a call', async () => {
    const gatherer = gather();
    await Promise.all([gatherer.embed('x', 'document'), gatherer.embed('y', 'query'), gatherer.embed('z', 'document')]);
    expect(reported.map(({ purpose, texts }) => `${purpose} ${texts}`).sort()).toEqual(['document 2', 'query 1']);
  });

  test('a call is reported in the context of the caller of its first text, whoever started it', async () => {
    const caller = new AsyncLocalStorage<string>();
    const told: [string | undefined, number][] = [];
    const onCall = ({ texts }: ProviderCall) => void told.push([caller.getStore(), texts]);
    const gatherer = gather({ concurrency: 1, maxBatchTexts: 2, lingerMs: 0, onCall });
    const embed = (name: string, texts: readonly string[]) =>
      caller.run(name, () => gatherer.embedAll(texts, 'document'));
    await Promise.all([embed('ana', ['one', 'two', 'three']), embed('bo', ['four', 'five']), embed('eve', ['six'])]);
    expect(told).toEqual([
      ['ana', 2],
      ['ana', 2],
      ['bo', 2],
    ]);
  });

  test('texts that arrive while every call is taken fill the next batch', async () => {
    provider.setMode('hang', { times: 1 });
    const gatherer = gather({ concurrency: 1, lingerMs: 0 });
    const controller = new AbortController();
    const arrived = provider.nextCall();
    const first = gatherer.embed('first', 'document', controller.signal);
    await arrived;
    const rest = [];
    for (const text of numbered(6)) {
      rest.push(gatherer.embed(text, 'document'));
      await new Promise((resolve) => setTimeout(resolve));
    }
    controller.abort();
    await expect(first).rejects.toMatchObject({ code: 'unavailable' });
    await Promise.all(rest);
    expect(batchSizes()).toEqual([1, 6]);
  });

  test('no more calls are in flight than allowed', async () => {
    provider.setMode('slow', { delayMs: 20 });
    let running = 0;
    let most = 0;
    const counting: Embedder = {
      ...embedder,
      async embed(texts, options) {
        most = Math.max(most, ++running);
        return embedder.embed(texts, options).finally(() => running--);
      },
    };
    const gatherer = createEmbeddingGatherer(counting, {
      maxBatchTexts: 1,
      maxBatchTokens: 100,
      lingerMs: 0,
      concurrency: 2,
    });
    await gatherer.embedAll(numbered(7), 'document');
    expect(most).toBe(2);
  });
});

describe('failures', () => {
  test('a refused text fails alone', async () => {
    provider.setMode('refuse_text', { marker: 'number 5' });
    const gatherer = gather();
    const results = await Promise.allSettled(numbered(8).map((text) => gatherer.embed(text, 'document')));
    expect(results.map((result) => result.status)).toEqual(
      numbered(8).map((_, i) => (i === 5 ? 'rejected' : 'fulfilled')),
    );
    expect(results[5]).toMatchObject({ reason: { code: 'invalid' } });
    // 8, then halves of it: 4 ok; 4, 2, 1 refused with their good halves; the one again, after another text was
    // answered.
    expect(batchSizes()).toEqual([8, 4, 4, 2, 1, 1, 1, 1, 2]);
    expect(provider.calls[6]!.texts).toEqual([PROBE_TEXT]);
    expect(provider.calls[7]!.texts).toEqual(provider.calls[5]!.texts);
  });

  test('a text that is alone in its batch is refused only by a server that answers another', async () => {
    provider.setMode('refuse_text', { marker: 'number 0' });
    await expect(gather().embed('text number 0', 'document')).rejects.toMatchObject({ code: 'invalid' });
    provider.setMode('status', { status: 400 });
    const error = await gather()
      .embed('text number 0', 'document')
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/HTTP 400.*any other: check/) as string,
    });
  });

  test.each([400, 413, 422])(
    'a server that answers %i to whatever it is asked blames no text, whether it is mended soon or late',
    async (status) => {
      for (let calls = 1; calls < 12; calls++) {
        provider.setMode('ok');
        provider.setMode('status', { status, times: calls });
        const gatherer = gather();
        const results = await Promise.allSettled(numbered(8).map((text) => gatherer.embed(text, 'document')));
        const codes = results.map((result) => (result.status === 'fulfilled' ? 'ok' : codeOf(result.reason)));
        expect(codes, `mended after ${calls} calls`).not.toContain('invalid');
      }
    },
  );

  test.each([
    ['rate_limited', { code: 'rate_limited', retryAfterMs: 3_000 }],
    ['status', { code: 'unavailable' }],
  ] as const)('%s fails every text of the call, and only those', async (mode, expected) => {
    provider.setMode(mode, { times: 1, headers: { 'retry-after': '3' } });
    const gatherer = gather({ maxBatchTexts: 2, concurrency: 1 });
    const results = await Promise.allSettled(numbered(4).map((text) => gatherer.embed(text, 'document')));
    expect(results.map((result) => result.status)).toEqual(['rejected', 'rejected', 'fulfilled', 'fulfilled']);
    expect(results[0]).toMatchObject({ reason: expected });
    expect(results[1]).toMatchObject({ reason: expected });
  });

  test.each([413, 422])(
    'a text for which a batch is answered %i, without a word about which, fails alone',
    async (status) => {
      provider.setMode('poison', { marker: 'number 5', status });
      const gatherer = gather();
      const results = await Promise.allSettled(numbered(8).map((text) => gatherer.embed(text, 'document')));
      expect(results.flatMap((result, i) => (result.status === 'rejected' ? [i] : []))).toEqual([5]);
      expect(results[5]).toMatchObject({
        reason: { code: 'invalid', message: expect.stringContaining(String(status)) as string },
      });
    },
  );

  test('every call is reported with its outcome, and with the tokens that are billed where the reply says so', async () => {
    provider.setMode('refuse_text', { times: 1, marker: 'number 1' });
    await gather().embedAll(numbered(2), 'document');
    const tokens = numbered(2).map(estimateTokens);
    expect(reported).toEqual([
      {
        purpose: 'document',
        texts: 2,
        tokens: tokens[0]! + tokens[1]!,
        outcome: 'invalid',
        error: expect.any(String) as string,
        server: 0,
        ms: expect.any(Number) as number,
      },
      {
        purpose: 'document',
        texts: 1,
        tokens: 1,
        outcome: 'ok',
        error: null,
        server: 0,
        ms: expect.any(Number) as number,
      },
      {
        purpose: 'document',
        texts: 1,
        tokens: 1,
        outcome: 'ok',
        error: null,
        server: 0,
        ms: expect.any(Number) as number,
      },
    ]);
  });
});

describe('a provider that takes fewer tokens a minute than a call may have', () => {
  const LIMIT = 700;
  const texts = Array.from({ length: 60 }, (_, i) => `${i} ${'word '.repeat(40)}`);
  const tokensOf = (sent: readonly string[]) => sent.reduce((sum, text) => sum + estimateTokens(text), 0);

  /** Asks as jobs do that wait and are taken up again. */
  async function embedUntilDone(options: Partial<GathererOptions>): Promise<void> {
    const gatherer = gather({ maxBatchTexts: 64, maxBatchTokens: 60_000, concurrency: 1, ...options });
    for (let round = 0; round < 50; round++) {
      const results = await Promise.allSettled(texts.map((text) => gatherer.embed(text, 'document')));
      if (results.every(({ status }) => status === 'fulfilled')) return;
      const asked = results.flatMap((result) => (result.status === 'rejected' ? [pauseOf(result.reason)] : []));
      await pause(Math.max(...asked));
    }
    throw new Error('it is never done');
  }

  test('is sent what it takes from the second call on where it says how much', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-'));
    const file = path.join(folder, 'budget.sqlite');
    const budget = openProviderBudget({ file, requestsPerMinute: 0, tokensPerMinute: 0, clock: systemClock });
    onTestFinished(() => {
      budget.close();
      fs.rmSync(folder, { recursive: true });
    });
    provider.limitTokens({ most: LIMIT, isTold: true });
    await embedUntilDone({ budget });
    const [first, ...others] = provider.calls.map((call) => tokensOf(call.texts));
    expect(first).toBeGreaterThan(LIMIT);
    for (const tokens of others) expect(tokens).toBeLessThanOrEqual(MIN_BOUND);
  });

  test('is sent less and less until it takes it where it does not say how much', async () => {
    provider.limitTokens({ most: LIMIT, isTold: false });
    await embedUntilDone({});
    const sizes = provider.calls.map((call) => tokensOf(call.texts));
    expect(sizes.slice(0, MAX_REFUSALS).every((size) => size === tokensOf(texts))).toBe(true);
    expect(sizes[MAX_REFUSALS]).toBeLessThanOrEqual(tokensOf(texts) / 2);
    expect(sizes.at(-1)).toBeLessThanOrEqual(LIMIT);
    expect(provider.refusals).toBeLessThanOrEqual(3 * MAX_REFUSALS);
  });

  test('is told from one that takes no more just now: what was answered once is never too large', () => {
    const bound = createBatchBound(10_000);
    bound.noteAnswer(8_000);
    for (let refusal = 0; refusal < 30; refusal++) bound.noteLimited(8_000, 0);
    expect(bound.tokens()).toBe(10_000);
    for (let refusal = 0; refusal < 30; refusal++) bound.noteLimited(9_000, 0);
    expect(bound.tokens()).toBe(8_000);
  });

  test('is not taken for one when calls that were under way together are refused together', () => {
    const bound = createBatchBound(10_000);
    for (let refusal = 0; refusal < 30; refusal++) bound.noteLimited(9_000, 60_000);
    expect(bound.tokens()).toBe(10_000);
  });

  test('is asked for more again, by and by', () => {
    const bound = createBatchBound(10_000);
    for (let refusal = 0; refusal < 30; refusal++) bound.noteLimited(bound.tokens(), 0);
    expect(bound.tokens()).toBe(MIN_BOUND);
    for (let answer = 0; answer < 1_000; answer++) bound.noteAnswer(1);
    expect(bound.tokens()).toBe(10_000);
  });
});

describe('an abort', () => {
  test('takes one caller out and leaves the call to the others', async () => {
    provider.setMode('slow', { delayMs: 30 });
    const gatherer = gather();
    const controller = new AbortController();
    const arrived = provider.nextCall();
    const leaving = gatherer.embed('leaves', 'document', controller.signal);
    const staying = gatherer.embed('stays', 'document');
    await arrived;
    controller.abort();
    await expect(leaving).rejects.toMatchObject({ code: 'unavailable' });
    expect(await staying).toHaveLength(256);
  });

  test('of the last caller ends the call', async () => {
    provider.setMode('hang');
    const gatherer = gather();
    const controller = new AbortController();
    const arrived = provider.nextCall();
    const all = gatherer.embedAll(numbered(3), 'document', controller.signal);
    const call = await arrived;
    controller.abort();
    await expect(all).rejects.toMatchObject({ code: 'unavailable' });
    await call.ended;
  });

  test('of a text that still lingers keeps it from being sent', async () => {
    const gatherer = gather();
    const controller = new AbortController();
    const leaving = gatherer.embed('leaves', 'document', controller.signal);
    const staying = gatherer.embed('stays', 'document');
    controller.abort();
    await expect(leaving).rejects.toMatchObject({ code: 'unavailable' });
    await staying;
    expect(provider.calls.map((call) => call.texts)).toEqual([['stays']]);
    await expect(gatherer.embed('late', 'document', controller.signal)).rejects.toMatchObject({ code: 'unavailable' });
  });
});

describe('embedTexts', () => {
  let folder: string;
  let store: Store;
  let modelNo: number;
  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-'));
    store = openStore(path.join(folder, 'tenant.sqlite'), { role: 'worker', create: true });
    modelNo = store.write(() => modelNumber(store, embedder, 1));
  });
  afterEach(() => {
    store.close();
    fs.rmSync(folder, { recursive: true });
  });
  const embed = (texts: string[], by = embedder) =>
    embedTexts({ store, modelNo, embedder: by, gatherer: gather() }, texts);

  /** Stores a memory that consists of these texts, as the encode step does. */
  const keep = ({ embeddings, textHashes }: EmbeddedTexts, memory: number, precision: VectorPrecision = 'float32') =>
    store.write(() => {
      store
        .prepare(
          `INSERT INTO memories (seq, id, user_no, event_time, event_time_given, created_at, updated_at, content_hash, content)
           VALUES (?, ?, 0, 1, 0, 1, 1, x'00', 'text')`,
        )
        .run(memory, `memory ${memory}`);
      for (const [windowNo, embedding] of embeddings.entries()) {
        const textHash = textHashes![windowNo]!;
        const vector = { memory, userNo: 0, windowNo, role: 'window', embedding, textHash } as const;
        insertVector(store, { modelNo, ...embedder }, vector, precision);
      }
    });
  const bytesStored = () => store.prepare('SELECT sum(octet_length(bytes)) FROM vector_parts').pluck().get();

  test('pays for a text once, and stores its vector once', async () => {
    const first = await embed(['a', 'b', 'a']);
    expect(first.misses).toBe(2);
    expect(first.textHashes?.map((hash) => hash.length)).toEqual([16, 16, 16]);
    keep(first, 1);
    expect(bytesStored()).toBe(3 * 256 * 4);
    const second = await embed(['b', 'c', 'a']);
    expect(second.misses).toBe(1);
    expect([second.embeddings[0], second.embeddings[2]]).toEqual([first.embeddings[1], first.embeddings[0]]);
    expect(provider.calls.map((call) => call.texts)).toEqual([['a', 'b'], ['c']]);
  });

  test.each(['int8', 'float16'] as const)('what was paid for is as near to itself in %s', async (precision) => {
    const paid = await embed(['a', 'b']);
    keep(paid, 1, precision);
    const found = await embed(['b', 'a']);
    expect(found.misses).toBe(0);
    expect(cosine(found.embeddings[0]!, paid.embeddings[1]!)).toBeGreaterThan(0.9999);
    expect(cosine(found.embeddings[1]!, paid.embeddings[0]!)).toBeGreaterThan(0.9999);
    // Another memory with the text has the same vector as the first.
    keep(found, 2, precision);
    const stored = store
      .prepare(`SELECT ${STORED_BYTES} FROM vectors v ORDER BY v.text_hash, v.memory`)
      .pluck()
      .all() as Buffer[];
    expect(stored[0]).toEqual(stored[1]);
    expect(stored[2]).toEqual(stored[3]);
  });

  test('says how many texts were known and what they would have cost', async () => {
    const embedded = await embed(['a', 'b', 'a']);
    expect(embedded).toMatchObject({ hits: 0, savedTokens: 0 });
    keep(embedded, 1);
    const known = await embed(['b', 'c', 'b']);
    expect(known).toMatchObject({ hits: 2, savedTokens: 2 * estimateTokens('b'), misses: 1 });
  });

  test('equal texts of several memories are sent once', async () => {
    const gatherer = gather();
    const of = (texts: string[]) => embedTexts({ store, modelNo, embedder, gatherer }, texts);
    const [first, second] = await Promise.all([of(['same', 'one']), of(['two', 'same'])]);
    expect(provider.calls.map((call) => call.texts)).toEqual([['same', 'one', 'two']]);
    expect(second.embeddings[1]).toEqual(first.embeddings[0]);
  });

  test('looks only for vectors of the same model', async () => {
    keep(await embed(['a']), 1);
    const other = store.write(() => modelNumber(store, { ...embedder, model: 'another' }, 3));
    const { misses } = await embedTexts({ store, modelNo: other, embedder, gatherer: gather() }, ['a']);
    expect(misses).toBe(1);
  });

  test('looks for nothing for an embedder that costs nothing', async () => {
    expect(await embed(['a', 'a'], { ...embedder, cacheable: false })).toMatchObject({ textHashes: null, misses: 0 });
    expect(provider.calls.map((call) => call.texts)).toEqual([['a', 'a']]);
  });

  test('a vector goes with the last memory that has its text, to the last byte', async () => {
    const [both, one] = [await embed(['a', 'b']), await embed(['b'])];
    keep(both, 1);
    keep(one, 2);
    const erase = (memory: number) => {
      const count = countEmbeddingsOnlyOf(store, [memory]);
      store.write(() => deleteVectors(store, memory, modelNo));
      return count;
    };
    expect(erase(1)).toBe(1);
    expect((await embed(['a', 'b'])).misses).toBe(1);
    expect(bytesStored()).toBe(256 * 4);
    expect(erase(2)).toBe(1);
    expect((await embed(['b'])).misses).toBe(1);
    expect(bytesStored()).toBeNull();
  });
});

describe('the tables of models and calls', () => {
  let folder: string;
  let store: Store;
  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-'));
    store = openStore(path.join(folder, 'tenant.sqlite'), { role: 'worker', create: true });
  });
  afterEach(() => {
    store.close();
    fs.rmSync(folder, { recursive: true });
  });

  test('a vector space has one number, and each part of its name makes another', () => {
    expect(findModelNumber(store, embedder)).toBeUndefined();
    const number = (changes: Partial<Embedder> = {}) =>
      store.write(() => modelNumber(store, { ...embedder, ...changes }, 1));
    const first = number();
    expect(number()).toBe(first);
    expect(findModelNumber(store, embedder)).toBe(first);
    const others = [
      number({ model: 'b' }),
      number({ provider: 'b' }),
      number({ dimensions: 512 }),
      number({ encoding: 'int5' }),
    ];
    expect(new Set([first, ...others]).size).toBe(5);
    expect(listModels(store).map((model) => model.modelNo)).toEqual([first, ...others]);
    expect(listModels(store)[3]).toMatchObject({
      provider: 'openai',
      model: 'fake',
      dimensions: 512,
      encoding: 'float32',
    });
  });

  const completed = {
    provider: 'openai',
    model: 'fake',
    server: 0,
    purpose: 'document',
    texts: 3,
    tokens: 12,
    outputTokens: 0,
    ms: 1.5,
    costUsd: 0.25,
    error: null,
  } as const;
  const all = { limit: 10, offset: 0 };

  test('calls are listed newest first, with their error, and those that failed by themselves', () => {
    const failed = { ...completed, at: 2, costUsd: 0, error: { code: 'unavailable', message: 'it was down' } };
    store.write(() => {
      appendEmbedLog(store, { ...completed, at: 1 });
      appendEmbedLog(store, failed);
      appendEmbedLog(store, { ...completed, at: 3 });
    });
    expect(listEmbedLogs(store, {}, all)).toEqual([{ ...completed, at: 3 }, failed, { ...completed, at: 1 }]);
    expect(listEmbedLogs(store, {}, { limit: 1, offset: 1 })).toEqual([failed]);
    expect(listEmbedLogs(store, { state: 'failed' }, all)).toEqual([failed]);
    expect(countEmbedLogs(store, {})).toBe(3);
    expect(countEmbedLogs(store, { state: 'failed' })).toBe(1);
    expect(countEmbedLogs(store, { state: 'completed' })).toBe(2);
  });

  test('the sums of a day count every call, and texts, tokens and cost of those that completed', () => {
    const at = Date.UTC(2026, 10, 21, 23, 59);
    store.write(() => {
      appendEmbedLog(store, { ...completed, at });
      appendEmbedLog(store, { ...completed, at });
      appendEmbedLog(store, { ...completed, at, costUsd: 0, error: { code: 'unavailable', message: 'it was down' } });
      appendEmbedLog(store, { ...completed, at: at + 60_000, purpose: 'rerank', outputTokens: 7 });
    });
    const sums = { provider: 'openai', model: 'fake', cachedTexts: 0, savedTokens: 0 };
    const next = { ...sums, day: '2026-11-22', purpose: 'rerank', calls: 1, failed: 0, texts: 3, tokens: 12 };
    expect(listUsage(store, { since: at })).toEqual([
      { ...next, outputTokens: 7, costUsd: 0.25 },
      {
        ...sums,
        day: '2026-11-21',
        purpose: 'document',
        calls: 3,
        failed: 1,
        texts: 6,
        tokens: 24,
        outputTokens: 0,
        costUsd: 0.5,
      },
    ]);
    expect(listUsage(store, { since: at + 60_000 })).toHaveLength(1);
  });

  test('old calls are purged oldest first, a slice at a time, and the sums stay', () => {
    store.write(() => [4, 2, 3, 1].forEach((at) => appendEmbedLog(store, { ...completed, at })));
    expect(store.write(() => purgeEmbedLogs(store, 4, 2))).toBe(2);
    expect(listEmbedLogs(store, {}, all).map((call) => call.at)).toEqual([3, 4]);
    expect(store.write(() => purgeEmbedLogs(store, 4, 2))).toBe(1);
    expect(listEmbedLogs(store, {}, all).map((call) => call.at)).toEqual([4]);
    expect(listUsage(store, { since: 0 })).toMatchObject([{ calls: 4 }]);
  });
});
