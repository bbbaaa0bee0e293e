import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createOpenAiEmbedder } from '../../../src/engine/adapters/openai-embedder.ts';
import { readConfig } from '../../../src/engine/config.ts';
import { openProviderBudget, type ProviderBudget } from '../../../src/engine/control/provider-budget.ts';
import type { ProviderCall, ProviderServer } from '../../../src/engine/providers/call-provider.ts';
import { createEmbeddingGatherer } from '../../../src/engine/providers/embedding-gatherer.ts';
import { systemClock, type Embedder } from '../../../src/engine/ports.ts';
import { startFakeProvider, type FakeProvider } from '../../support/fake-provider.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const TEXTS = ['one text', 'another text'];

async function startServer(): Promise<{ provider: FakeProvider; server: ProviderServer }> {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  const embedder = createOpenAiEmbedder(
    readConfig({
      OM_EMBEDDINGS: 'openai',
      OM_OPENAI_BASE_URL: provider.url,
      OM_VEC_DIM: '256',
      OM_OPENAI_MODEL: 'fake',
    }),
  );
  const budget = openProviderBudget({
    file: path.join(tempFolder(), 'budget.sqlite'),
    requestsPerMinute: 0,
    tokensPerMinute: 0,
    clock: systemClock,
  });
  onTestFinished(() => budget.close());
  return { provider, server: { embedder, budget } };
}

/** Two servers of one model and a gatherer that asks them. */
async function startChain() {
  const [first, second] = [await startServer(), await startServer()];
  const calls: ProviderCall[] = [];
  const gatherer = createEmbeddingGatherer(first.server.embedder, {
    maxBatchTexts: 8,
    maxBatchTokens: 1_000,
    lingerMs: 0,
    concurrency: 1,
    budget: first.server.budget,
    fallbacks: [second.server],
    onCall: (call) => calls.push(call),
  });
  const embed = () => gatherer.embedAll(TEXTS, 'document');
  return { first: first.provider, second: second.provider, calls, gatherer, embed };
}

test('the second server is asked only where the first fails, and both make the same vectors', async () => {
  const { first, second, calls, embed } = await startChain();
  const vectors = await embed();
  expect(second.calls).toHaveLength(0);
  first.setMode('status', { status: 500 });
  expect(await embed()).toEqual(vectors);
  expect(calls.map(({ server, outcome }) => [server, outcome])).toEqual([
    [0, 'ok'],
    [0, 'unavailable'],
    [1, 'ok'],
  ]);
});

test('while the first server is left alone the second is asked at once', async () => {
  const { first, second, embed } = await startChain();
  first.setMode('rate_limited', { times: 1, headers: { 'retry-after': '600' } });
  await embed();
  await embed();
  expect(first.calls).toHaveLength(1);
  expect(second.calls).toHaveLength(2);
});

test('while the breaker of the first is open the second is asked, and the first again once it answers', async () => {
  const { first, second, calls, embed } = await startChain();
  first.setMode('status', { status: 500 });
  for (let call = 0; call < 7; call++) await embed();
  expect(first.calls).toHaveLength(5);
  expect(second.calls).toHaveLength(7);
  first.setMode('ok');
  while (calls.at(-1)?.server !== 0) await embed();
  const asked = second.calls.length;
  await embed();
  expect(second.calls).toHaveLength(asked);
});

test('a text that the first server refuses is not shown to the second', async () => {
  const { first, second, embed } = await startChain();
  first.setMode('refuse_text', { marker: 'another' });
  await expect(embed()).rejects.toMatchObject({ code: 'invalid' });
  expect(second.calls).toHaveLength(0);
});

test('a text that only the server that stands in refuses waits for the first, and the others of its batch do not', async () => {
  const { first, second, gatherer } = await startChain();
  first.setMode('status', { status: 503 });
  second.setMode('refuse_text', { marker: 'another' });
  const results = await Promise.allSettled(TEXTS.map((text) => gatherer.embed(text, 'document')));
  expect(results).toMatchObject([{ status: 'fulfilled' }, { reason: { code: 'unavailable' } }]);
});

test('while the first server is down, one that stands in and refuses everything is no better', async () => {
  const { first, second, gatherer } = await startChain();
  first.setMode('status', { status: 503 });
  second.setMode('status', { status: 400 });
  const results = await Promise.allSettled(TEXTS.map((text) => gatherer.embed(text, 'document')));
  expect(results).toMatchObject([{ reason: { code: 'unavailable' } }, { reason: { code: 'unavailable' } }]);
});

test('a first server that refuses everything is as good as down: the second answers', async () => {
  const { first, second, calls, gatherer } = await startChain();
  first.setMode('status', { status: 400 });
  for (let round = 0; round < 4; round++) {
    await Promise.all(TEXTS.map((text) => gatherer.embed(`${text} ${round}`, 'document')));
  }
  expect(second.calls.length).toBeGreaterThan(0);
  // The breaker of the first is open by then, and whole batches go to the second.
  expect(calls.at(-1)).toMatchObject({ server: 1, texts: TEXTS.length, outcome: 'ok' });
});

test('what an embedder has to load is loaded before its call is counted', async () => {
  const { server } = await startServer();
  const order: string[] = [];
  const budget: ProviderBudget = {
    ...server.budget!,
    acquire(...asked) {
      order.push('counted');
      return server.budget!.acquire(...asked);
    },
  };
  const embedder: Embedder = {
    ...server.embedder,
    async prepare() {
      await server.embedder.prepare!();
      order.push('loaded');
    },
  };
  const gatherer = createEmbeddingGatherer(embedder, {
    maxBatchTexts: 8,
    maxBatchTokens: 1_000,
    lingerMs: 0,
    concurrency: 1,
    budget,
  });
  await gatherer.embed('a text', 'document');
  expect(order).toEqual(['loaded', 'counted']);
});

test('where all fail the error is that of the first', async () => {
  const { first, second, embed } = await startChain();
  first.setMode('rate_limited', { headers: { 'retry-after': '7' } });
  second.setMode('status', { status: 500 });
  await expect(embed()).rejects.toMatchObject({ code: 'rate_limited', retryAfterMs: 7_000 });
});
