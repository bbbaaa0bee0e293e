import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLanguageModel } from '../../../src/engine/adapters/create-language-model.ts';
import { readConfig } from '../../../src/engine/config.ts';
import { createMetrics } from '../../../src/engine/metrics.ts';
import { openLimitedLanguageModel } from '../../../src/engine/providers/open-providers.ts';
import { systemClock } from '../../../src/engine/ports.ts';
import type { EmbedLogEntry } from '../../../src/engine/types.ts';
import { startFakeProvider } from '../../support/fake-provider.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const UNCACHED = { purpose: 'rerank', instructions: 'Rank.', input: 'canary passages', maxTokens: 50 } as const;
const REQUEST = { ...UNCACHED, tenant: 'one' };

async function open(settings: Record<string, string> = {}, folder = tempFolder()) {
  const { chat, url, close } = await startFakeProvider({ dimensions: 256 });
  onTestFinished(close);
  chat.say('an answer');
  const config = readConfig({
    OM_DB_PATH: path.join(folder, 'cairn.sqlite'),
    OM_LLM_MODEL: 'gpt-4o-mini',
    OM_LLM_BASE_URL: url,
    ...settings,
  });
  const calls: EmbedLogEntry[] = [];
  const metrics = createMetrics();
  const start = () => {
    const options = { config, clock: systemClock, metrics, onCall: (entry: EmbedLogEntry) => void calls.push(entry) };
    const opened = openLimitedLanguageModel(createLanguageModel(config)!, null, options);
    onTestFinished(() => opened.close());
    return opened.languageModel;
  };
  return { chat, url, calls, metrics, model: start(), start };
}

test('the same question is asked once, and a new one again', async () => {
  const { chat, calls, model } = await open();
  const first = await model.complete(REQUEST);
  expect(await model.complete(REQUEST)).toEqual(first);
  expect(chat.calls).toHaveLength(1);
  expect(calls).toHaveLength(1);
  await model.complete({ ...REQUEST, input: 'other passages' });
  await model.complete({ ...REQUEST, instructions: 'Rank them.' });
  await model.complete({ ...REQUEST, maxTokens: 51 });
  expect(chat.calls).toHaveLength(4);
});

test('an answer is given again only to the tenant that asked, and is sent without its name', async () => {
  const { chat, model } = await open();
  for (const tenant of ['one', 'other', 'one', 'other']) await model.complete({ ...REQUEST, tenant });
  expect(chat.calls).toHaveLength(2);
  expect(chat.calls[1]!.body).toEqual(chat.calls[0]!.body);
  for (let call = 0; call < 2; call += 1) await model.complete(UNCACHED);
  expect(chat.calls).toHaveLength(4);
});

test('a failure is not remembered', async () => {
  const { chat, model } = await open();
  chat.setMode('status', { status: 500, times: 1 });
  await expect(model.complete(REQUEST)).rejects.toMatchObject({ code: 'unavailable' });
  expect((await model.complete(REQUEST)).text).toBe('an answer');
});

test('a model that takes no temperature is asked again, each time within the limits, counted and logged', async () => {
  const { chat, calls, model } = await open({ OM_LLM_RPM: '2' });
  chat.setMode('no_temperature');
  expect((await model.complete(REQUEST)).text).toBe('an answer');
  expect(calls).toMatchObject([{ error: { code: 'conflict' } }, { error: null }]);
  expect(chat.calls).toHaveLength(2);
  await expect(model.complete({ ...REQUEST, input: 'more' })).rejects.toMatchObject({ code: 'rate_limited' });

  const limited = await open({ OM_LLM_RPM: '1' });
  limited.chat.setMode('no_temperature');
  await expect(limited.model.complete(REQUEST)).rejects.toMatchObject({ code: 'rate_limited' });
  expect(limited.chat.calls).toHaveLength(1);
});

test('a pause that one server asked for holds back no other, and not another key', async () => {
  const folder = tempFolder();
  const first = await open({}, folder);
  first.chat.setMode('rate_limited', { headers: { 'retry-after': '3600' } });
  await expect(first.model.complete(REQUEST)).rejects.toMatchObject({ code: 'rate_limited' });
  await expect(first.start().complete(REQUEST)).rejects.toMatchObject({ code: 'rate_limited' });
  expect(first.chat.calls).toHaveLength(1);
  const second = await open({}, folder);
  expect((await second.model.complete(REQUEST)).text).toBe('an answer');
  first.chat.setMode('ok');
  const otherKey = await open({ OM_LLM_BASE_URL: first.url, OM_LLM_API_KEY: 'another' }, folder);
  expect((await otherKey.model.complete(REQUEST)).text).toBe('an answer');
});

test('every call is logged with its purpose, tokens, time and cost, and without a word of it', async () => {
  const { chat, calls, model } = await open();
  await model.complete(REQUEST);
  chat.setMode('echo', { status: 500 });
  await expect(model.complete({ ...REQUEST, purpose: 'entities', input: 'canary text' })).rejects.toThrow();
  expect(calls).toMatchObject([
    {
      provider: 'openai',
      model: 'gpt-4o-mini',
      purpose: 'rerank',
      texts: 1,
      tokens: 11,
      outputTokens: 7,
      costUsd: (11 * 0.15 + 7 * 0.6) / 1e6,
      error: null,
    },
    { purpose: 'entities', outputTokens: 0, costUsd: 0, error: { code: 'unavailable' } },
  ]);
  expect(calls.every(({ ms }) => ms > 0)).toBe(true);
  expect(JSON.stringify(calls)).not.toContain('canary');
});

test('two processes keep to its limit together; a rerank does not wait for room', async () => {
  const { chat, model, start } = await open({ OM_LLM_RPM: '2' });
  const other = start();
  const numbered = (number: number) => ({ ...REQUEST, input: `passages ${number}` });
  await model.complete(numbered(1));
  await other.complete(numbered(2));
  await expect(model.complete(numbered(3))).rejects.toMatchObject({ code: 'rate_limited' });
  await expect(other.complete(numbered(4))).rejects.toMatchObject({ code: 'rate_limited' });
  expect(chat.calls).toHaveLength(2);
});

test('names wait for room until their caller gives up', async () => {
  const { chat, model } = await open({ OM_LLM_TPM: '150' });
  await model.complete({ ...REQUEST, maxTokens: 100 });
  const controller = new AbortController();
  const waiting = model.complete({ ...REQUEST, purpose: 'entities', input: 'a text' }, controller.signal);
  controller.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'unavailable' });
  expect(chat.calls).toHaveLength(1);
});

test('after five failures in a row it is left alone, which is shown', async () => {
  const { chat, model, metrics } = await open();
  chat.setMode('status', { status: 500 });
  for (let call = 0; call < 7; call++) await model.complete(REQUEST).catch(() => {});
  expect(chat.calls).toHaveLength(5);
  expect(await metrics.registry.metrics()).toContain('cairn_provider_breaker_open{service="language_model"} 1');
});

test('what a reply says is left is kept to', async () => {
  const { chat, model } = await open();
  const headers = { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '30s' };
  chat.setMode('status', { status: 429, headers: { ...headers, 'retry-after-ms': '0' } });
  await expect(model.complete(REQUEST)).rejects.toMatchObject({ code: 'rate_limited' });
  chat.setMode('ok');
  await expect(model.complete(REQUEST)).rejects.toMatchObject({ code: 'rate_limited' });
  expect(chat.calls).toHaveLength(1);
});
