import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createLanguageModel } from '../../../src/engine/adapters/create-language-model.ts';
import { readConfig } from '../../../src/engine/config.ts';
import type { EngineError } from '../../../src/engine/errors.ts';
import type { LanguageModel } from '../../../src/engine/ports.ts';
import {
  startFakeProvider,
  type FakeChatMode,
  type FakeModeOptions,
  type FakeProvider,
} from '../../support/fake-provider.ts';
import { refusedCall } from '../../support/refused-call.ts';

const KEY = 'sk-canary-key-0123456789';
const REQUEST = {
  purpose: 'rerank',
  instructions: 'canary instructions',
  input: 'canary input',
  maxTokens: 50,
} as const;

let provider: FakeProvider;
beforeEach(async () => {
  provider = await startFakeProvider({ dimensions: 256 });
  provider.chat.say('an answer');
});
afterEach(async () => {
  vi.unstubAllGlobals();
  await provider.close();
});

function open(settings: Record<string, string> = {}): LanguageModel {
  const model = createLanguageModel(
    readConfig({ OM_LLM_MODEL: 'a-model', OM_LLM_BASE_URL: provider.url, OM_LLM_API_KEY: KEY, ...settings }),
  );
  expect(model).not.toBeNull();
  return model!;
}

test('without OM_LLM_MODEL there is no language model', () => {
  expect(createLanguageModel(readConfig({}))).toBeNull();
});

describe('the request', () => {
  test('keeps instructions and data apart and asks for one short answer at temperature 0', async () => {
    await open().complete(REQUEST);
    expect(provider.chat.calls).toHaveLength(1);
    const { body, headers } = provider.chat.calls[0]!;
    expect(body).toEqual({
      model: 'a-model',
      messages: [
        { role: 'system', content: REQUEST.instructions },
        { role: 'user', content: REQUEST.input },
      ],
      max_tokens: 50,
      temperature: 0,
    });
    expect(headers.authorization).toBe(`Bearer ${KEY}`);
  });

  test('sends no authorization where no key is set', async () => {
    await open({ OM_LLM_API_KEY: '' }).complete(REQUEST);
    expect(provider.chat.calls[0]!.headers.authorization).toBeUndefined();
  });

  test('limits tokens by the name that OpenAI itself knows', async () => {
    const realFetch = fetch;
    vi.stubGlobal('fetch', (url: string, init: RequestInit) =>
      realFetch(url.replace('https://api.openai.com/v1', provider.url), init),
    );
    await open({ OM_LLM_BASE_URL: 'https://api.openai.com/v1' }).complete(REQUEST);
    const { body } = provider.chat.calls[0]!;
    expect(body['max_completion_tokens']).toBe(50);
    expect(body).not.toHaveProperty('max_tokens');
  });

  test('leaves the temperature out for a model that refuses one, and remembers it', async () => {
    provider.chat.setMode('no_temperature');
    const model = open();
    // The first refusal is its caller's to ask again after, as each request is to be counted.
    expect(await refusedCall(model.complete(REQUEST))).toMatchObject({ code: 'conflict' });
    expect((await model.complete(REQUEST)).text).toBe('an answer');
    expect((await model.complete(REQUEST)).text).toBe('an answer');
    expect(provider.chat.calls).toHaveLength(3);
  });

  test('that fails beside one that is refused for its temperature fails for its own reason', async () => {
    const waiting: http.ServerResponse[] = [];
    const server = http.createServer((request, response) => {
      request.resume();
      if (waiting.push(response) < 2) return;
      const type = { 'content-type': 'application/json' };
      const refusal = { error: { message: 'no', param: 'temperature', code: 'unsupported_value' } };
      waiting[0]!.writeHead(400, type).end(JSON.stringify(refusal));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const model = open({ OM_LLM_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    const calls = [0, 1].map(async () => refusedCall(model.complete(REQUEST)));
    // Which of the two calls arrives first does not matter.
    expect(await Promise.race(calls)).toMatchObject({ code: 'conflict' });
    waiting[1]!.writeHead(503).end();
    expect((await Promise.all(calls)).map(({ code }) => code).sort()).toEqual(['conflict', 'unavailable']);
  });
});

describe('a good reply', () => {
  test('brings the text and what it cost', async () => {
    expect(await open().complete(REQUEST)).toEqual({ text: 'an answer', inputTokens: 11, outputTokens: 7 });
  });

  test('of a server that does not count is estimated', async () => {
    provider.chat.setMode('uncounted');
    const { text, inputTokens, outputTokens } = await open().complete(REQUEST);
    expect(text).toBe('an answer');
    expect(inputTokens).toBeGreaterThan(2);
    expect(outputTokens).toBeGreaterThan(1);
  });
});

describe('a bad reply', () => {
  test.each<[FakeChatMode, RegExp]>([
    ['html', /no completion/],
    ['empty', /no completion|JSON/],
    ['truncated', /JSON/],
    ['no_choice', /no completion/],
    ['reset', /cut off/],
    ['redirect', /HTTP 307/],
  ])('of kind %s is no completion', async (mode, message) => {
    provider.chat.setMode(mode);
    const error = await refusedCall(open().complete(REQUEST));
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(message) as string });
    expect(provider.chat.calls).toHaveLength(1);
  });

  test.each<[FakeChatMode, RegExp]>([
    ['no_text', /empty/],
    ['blank', /empty/],
    ['refusal', /refusal/],
    ['filtered', /refusal/],
    ['cut_short', /cut off/],
  ])('that declines to answer (%s) is to blame on the prompt', async (mode, message) => {
    provider.chat.setMode(mode);
    const error = await refusedCall(open().complete(REQUEST));
    expect(error).toMatchObject({ code: 'invalid', message: expect.stringMatching(message) as string });
    expect(provider.chat.calls).toHaveLength(1);
  });

  test.each<[FakeChatMode, RegExp]>([
    ['hang', /OM_LLM_TIMEOUT_MS/],
    ['drip', /OM_LLM_TIMEOUT_MS/],
    ['huge', /longer than \d+ bytes/],
  ])('that would never end (%s) is cut off', async (mode, message) => {
    provider.chat.setMode(mode);
    const arrived = provider.chat.nextCall();
    const OM_LLM_TIMEOUT_MS = mode === 'huge' ? '60000' : '500';
    const error = await refusedCall(open({ OM_LLM_TIMEOUT_MS }).complete(REQUEST));
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(message) as string });
    await (
      await arrived
    ).ended;
  });
});

describe('an error reply', () => {
  test.each<[FakeChatMode, FakeModeOptions, Partial<EngineError>]>([
    ['rate_limited', { headers: { 'retry-after': '7' } }, { code: 'rate_limited', retryAfterMs: 7_000 }],
    ['status', { status: 500 }, { code: 'unavailable' }],
    ['status', { status: 401 }, { code: 'unavailable', message: expect.stringMatching(/OM_LLM_API_KEY/) as string }],
    ['status', { status: 404 }, { code: 'unavailable', message: expect.stringMatching(/OM_LLM_BASE_URL/) as string }],
    ['status', { status: 400 }, { code: 'unavailable', message: expect.stringMatching(/OM_LLM_MODEL/) as string }],
  ])('%s %o', async (mode, options, expected) => {
    provider.chat.setMode(mode, options);
    expect(await refusedCall(open().complete(REQUEST))).toMatchObject(expected);
    expect(provider.chat.calls, 'a call is one request').toHaveLength(1);
  });

  test.each([400, 401, 429, 500])('of status %i that quotes prompt and key is not passed on', async (status) => {
    provider.chat.setMode('echo', { status });
    await refusedCall(open().complete(REQUEST));
  });
});

test('an abort ends the call and its connection', async () => {
  provider.chat.setMode('hang');
  const controller = new AbortController();
  const arrived = provider.chat.nextCall();
  const completion = refusedCall(open().complete(REQUEST, controller.signal));
  const call = await arrived;
  controller.abort();
  expect(await completion).toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/given up/) as string,
  });
  await call.ended;
});
