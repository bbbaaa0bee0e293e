import { describe, expect, test } from 'vitest';
import type { FakeMode } from '../support/fake-provider.ts';
import { countBadVectors, startWithProvider } from '../support/provider-service.ts';

/** Every way in which a provider can fail that is its own fault, and so costs no job an attempt. */
const FAULTS: readonly FakeMode[] = [
  'status',
  'rate_limited',
  'hang',
  'drip',
  'drip_error',
  'reset',
  'cut',
  'redirect',
  'html',
  'truncated',
  'huge',
  'empty',
  'no_list',
  'short',
  'extra',
  'index_outside',
  'nan',
  'null',
  'strings',
  'infinite',
  'zeros',
  'wrong_dimension',
  'no_vector',
];

describe('whatever the provider does', () => {
  test.each(FAULTS)('%s: adds and words go on, no bad vector is stored, all is embedded afterwards', async (mode) => {
    // Of the first failure's pause more is said below, so no slow machine may make it a timeout.
    const settings = mode === 'rate_limited' ? { OM_EMBED_TIMEOUT_MS: '10000' } : {};
    const { folder, service, provider, add } = await startWithProvider(settings);
    provider.setMode(mode, mode === 'rate_limited' ? { headers: { 'retry-after': '2' } } : {});
    await add(Array.from({ length: 20 }, (_, number) => `Platform ${number} is closed for repairs`));
    const paused = await service.logged('work_paused');
    if (mode === 'rate_limited') expect(paused['waitMs']).toBe(2_000);
    const answer = await service.request('POST', '/memory/query', { body: { query: 'platform repairs' } });
    expect(answer.body).toMatchObject({ degraded: true });
    expect(answer.body.matches.length).toBeGreaterThan(0);
    expect(countBadVectors(folder)).toEqual({ vectors: 0, bad: 0 });

    provider.setMode('ok');
    expect(await service.idle()).toMatchObject({ done: 20, dead: 0 });
    expect(countBadVectors(folder)).toEqual({ vectors: 20, bad: 0 });
    const { items } = (await service.request('GET', '/jobs')).body;
    expect(items.every(({ attempts }) => attempts === 0)).toBe(true);
  });

  test('slow: adds are answered long before their vectors', async () => {
    const { service, provider, add } = await startWithProvider({ OM_EMBED_TIMEOUT_MS: '5000' });
    provider.setMode('slow', { delayMs: 1_000 });
    await add(Array.from({ length: 100 }, (_, number) => `Carriage ${number} has no heating`));
    expect((await service.request('GET', '/jobs?l=1')).body.counts).toMatchObject({ done: 0 });
    expect(await service.idle()).toMatchObject({ done: 100, dead: 0 });
  });
});

test('a provider that asks for an hour is left alone, and a stop does not wait for it', async () => {
  const { service, provider, add } = await startWithProvider();
  provider.setMode('rate_limited', { headers: { 'retry-after': '3600' } });
  await add(['The first to be refused']);
  expect(await service.logged('work_paused')).toMatchObject({ waitMs: 3_600_000 });
  const calls = provider.calls.length;
  await add(Array.from({ length: 200 }, (_, number) => `Signal ${number} shows red`));
  expect((await service.request('GET', '/jobs?l=1')).body.counts).toMatchObject({ queued: 201, active: 0 });
  expect(provider.calls.length).toBe(calls);
  expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
});
