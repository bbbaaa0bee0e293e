import { afterAll, beforeAll, expect, test } from 'vitest';
import { startFakeProvider, type FakeProvider } from '../support/fake-provider.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let provider: FakeProvider;
let api: TestApi;
beforeAll(async () => {
  provider = await startFakeProvider({ dimensions: 256 });
  api = await startApi({
    folder: tempFolder(),
    workers: true,
    settings: {
      OM_EMBEDDINGS: 'openai',
      OM_OPENAI_BASE_URL: provider.url,
      OM_OPENAI_MODEL: 'fake',
      OM_VEC_DIM: '256',
      OM_PRICES: 'fake=2',
      // On a busy machine the default gives the call up before the provider has answered.
      OM_QUERY_EMBED_TIMEOUT_MS: '30000',
    },
  });
});
afterAll(async () => {
  await api.stop();
  await provider.close();
});

async function finish(content: string): Promise<void> {
  const { token } = await api.add({ content });
  await (await api.engine.tenant('default')).waitFor(token, 120_000);
}

interface Calls {
  readonly items: readonly { readonly purpose: string; readonly error: object | null }[];
  readonly total: number;
}

/** Calls are logged when the batch that made them has ended, which the caller does not wait for. */
async function callsOnceThereAre(count: number, query = ''): Promise<Calls> {
  for (;;) {
    const { status, body } = await api.request('GET', `/embeddings/log?l=1000${query}`);
    expect(status).toBe(200);
    const calls = body as unknown as Calls;
    if (calls.total >= count) return calls;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('calls are listed newest first with what they cost, and those that failed by themselves', async () => {
  await finish('The lighthouse keeper leaves at dawn');
  await callsOnceThereAre(1);
  provider.setMode('status', { status: 500, times: 1 });
  await api.request('POST', '/memory/query', { body: { query: 'lighthouse keeper' } });
  const { items, total } = await callsOnceThereAre(2);
  expect(total).toBe(2);
  expect(items).toEqual([
    expect.objectContaining({
      purpose: 'query',
      cost_usd: 0,
      error: { code: 'unavailable', message: 'the call to the embedding provider was answered with HTTP 500' },
    }),
    {
      at: expect.any(Number) as number,
      provider: 'openai',
      model: 'fake',
      server: 0,
      purpose: 'document',
      texts: 1,
      tokens: 1,
      output_tokens: 0,
      ms: expect.any(Number) as number,
      cost_usd: 2e-6,
      error: null,
    },
  ]);
  expect(await callsOnceThereAre(1, '&state=failed')).toMatchObject({ total: 1, items: [{ purpose: 'query' }] });
  expect(await callsOnceThereAre(1, '&state=completed')).toMatchObject({ total: 1, items: [{ purpose: 'document' }] });
  expect((await api.request('GET', '/embeddings/log?l=1&u=1')).body.items).toEqual([items[1]]);
});

test('a text that is known costs nothing, which the sums of the day show', async () => {
  await api
    .add({ content: 'The ferry leaves at noon', session_id: 'one' })
    .then(async ({ token }) => (await api.engine.tenant('default')).waitFor(token, 120_000));
  const calls = provider.calls.length;
  await api
    .add({ content: 'The ferry leaves at noon', session_id: 'two' })
    .then(async ({ token }) => (await api.engine.tenant('default')).waitFor(token, 120_000));
  expect(provider.calls).toHaveLength(calls);
  await callsOnceThereAre(2, '&state=completed');
  const { body } = await api.request('GET', '/embeddings/stats');
  const documents = {
    day: new Date().toISOString().slice(0, 10),
    provider: 'openai',
    model: 'fake',
    purpose: 'document',
  };
  const sums = { calls: 2, failed: 0, texts: 2, tokens: 2, output_tokens: 0, cost_usd: 4e-6, cached_texts: 1 };
  expect(body.items).toContainEqual({ ...documents, ...sums, saved_tokens: expect.any(Number) as number });
  expect(body['totals']).toMatchObject({ calls: 3, failed: 1, cached_texts: 1 });
  const { text } = await api.request('GET', '/metrics');
  expect(text).toContain('cairn_embedding_cache_lookups_total{cache="document",outcome="hit"} 1');
  expect(text).toMatch(/^cairn_provider_cost_usd_total\{purpose="document"\} 0\.000004$/m);
});

test('a question that is asked again is a hit', async () => {
  for (let time = 0; time < 2; time++)
    await api.request('POST', '/memory/query', { body: { query: 'Who leaves at noon?' } });
  const { text } = await api.request('GET', '/metrics');
  expect(text).toContain('cairn_embedding_cache_lookups_total{cache="query",outcome="hit"} 1');
});

test.each([
  '/embeddings/log?state=lost',
  '/embeddings/log?limit=1',
  '/embeddings/stats?days=0',
  '/embeddings/stats?day=1',
])('GET %s is refused', async (path) => {
  expect((await api.request('GET', path)).status).toBe(400);
});
