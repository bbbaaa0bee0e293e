import { expect, onTestFinished, test } from 'vitest';
import { createHashedEmbedder } from '../../src/engine/adapters/hashed-embedder.ts';
import { cosine } from '../../src/engine/store/vector-encoding.ts';
import { withStore } from '../support/add-checker.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { countBadVectors, startWithProvider } from '../support/provider-service.ts';
import { storedVectors } from '../support/stored-vectors.ts';

const MEMORIES = Array.from({ length: 200 }, (_, number) => `The ferry to island ${number} leaves at noon`);

test('a provider that is down delays meaning, never storage or words, and is caught up with in full batches', async () => {
  const { folder, service, provider, add } = await startWithProvider();
  provider.setMode('status', { status: 500 });
  await add(MEMORIES);
  const found = await service.request('POST', '/memory/query', { body: { query: 'ferry island 77', k: 3 } });
  expect(found.status).toBe(200);
  expect(found.body).toMatchObject({ degraded: true });
  expect(found.body.matches[0]?.content).toBe(MEMORIES[77]);
  await service.logged('work_paused');
  expect(countBadVectors(folder)).toEqual({ vectors: 0, bad: 0 });

  const callsWhileDown = provider.calls.length;
  provider.setMode('ok');
  expect(await service.idle()).toMatchObject({ done: MEMORIES.length, dead: 0 });
  const calls = provider.calls.slice(callsWhileDown).filter(({ texts }) => texts.length > 1);
  console.log(`texts per call after recovery: ${calls.map(({ texts }) => texts.length).join(', ')}`);
  // 64 texts a call: 200 need four. Each batch that failed before the pause may be cut into eight.
  const failed = provider.calls.slice(0, callsWhileDown).filter(({ texts }) => texts.length > 1);
  expect(calls.length).toBeLessThanOrEqual(4 + 8 * failed.length);
  // What was in none of them comes in full batches: of one that failed, two are left at least.
  const untouched = MEMORIES.length - new Set(failed.flatMap(({ texts }) => texts)).size;
  const full = calls.filter(({ texts }) => texts.length === 64).length;
  expect(full).toBeGreaterThanOrEqual(Math.min(2, Math.floor(untouched / 64)));
  const again = await service.request('POST', '/memory/query', { body: { query: 'ferry island 78' } });
  expect(again.body).toMatchObject({ degraded: false });
  expect(countBadVectors(folder)).toEqual({ vectors: MEMORIES.length, bad: 0 });
});

test('a text that the provider refuses becomes a dead letter alone, with its reason, and can be retried', async () => {
  const { service, provider, add } = await startWithProvider();
  provider.setMode('refuse_text', { marker: 'unspeakable' });
  const jobs = await add([...MEMORIES.slice(0, 20), 'something unspeakable', ...MEMORIES.slice(20, 40)]);
  expect(await service.idle()).toMatchObject({ done: 40, dead: 1 });
  const letters = await service.request('GET', '/jobs?state=dead');
  expect(letters.body.items).toMatchObject([
    { id: jobs[20], error: { code: 'invalid', message: 'the embedding provider refused a text (HTTP 400)' } },
  ]);
  const memory = `/memory/${letters.body.items[0]?.memory_id}`;
  expect((await service.request('GET', memory)).body).toMatchObject({ state: 'failed' });

  provider.setMode('ok');
  expect((await service.request('POST', `/jobs/${jobs[20]}/retry`)).status).toBe(200);
  expect(await service.idle()).toMatchObject({ done: 41, dead: 0 });
  expect((await service.request('GET', memory)).body).toMatchObject({ state: 'ready' });
});

test('one text that spoils every reply it is in holds up nobody for long', async () => {
  const { folder, service, provider, add } = await startWithProvider({ OM_JOB_ATTEMPTS: '2' });
  provider.setMode('poison', { marker: 'unspeakable' });
  const jobs = await add([...MEMORIES.slice(0, 15), 'something unspeakable', ...MEMORIES.slice(15, 30)]);
  expect(await service.logged('work_paused')).toMatchObject({ code: 'unavailable', waitMs: 1_000 });
  expect(await service.idle()).toMatchObject({ done: 30, dead: 1 });
  const letters = await service.request('GET', '/jobs?state=dead');
  expect(letters.body.items).toMatchObject([{ id: jobs[15], attempts: 2, error: { code: 'unavailable' } }]);
  const found = await service.request('POST', '/memory/query', { body: { query: 'something unspeakable', k: 1 } });
  expect(found.body.matches).toMatchObject([{ content: 'something unspeakable' }]);

  provider.setMode('ok');
  expect((await service.request('POST', `/jobs/${jobs[15]}/retry`)).status).toBe(200);
  expect(await service.idle()).toMatchObject({ done: 31, dead: 0 });
  expect(countBadVectors(folder).bad).toBe(0);
});

test('the service goes on with the server that stands in, and nothing but its vectors is stored', async () => {
  const standIn = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => standIn.close());
  const { service, provider, add } = await startWithProvider({
    OM_EMBED_FALLBACK: standIn.url,
    OM_EMBED_FALLBACK_KEY: 'a-key-of-its-own',
    OPENAI_API_KEY: 'the-key-of-the-first',
  });
  provider.setMode('status', { status: 503 });
  await add(['The lighthouse keeper leaves at dawn']);
  expect(await service.idle()).toMatchObject({ done: 1, dead: 0 });
  expect(standIn.calls.map(({ headers }) => headers.authorization)).toEqual(['Bearer a-key-of-its-own']);
  const { body } = await service.request('POST', '/memory/query', { body: { query: 'Who leaves at dawn?' } });
  expect(body).toMatchObject({ degraded: false });
  const failures = await service.request('GET', '/embeddings/log?state=failed');
  expect(failures.body.items[0]).toMatchObject({ server: 0, error: { code: 'unavailable' } });
});

test('without a stand-in an outage costs vectors and nothing else: no other vector takes their place', async () => {
  const { folder, service, provider, add } = await startWithProvider();
  provider.setMode('status', { status: 500 });
  const text = 'The lighthouse keeper leaves at dawn';
  await add([text]);
  const { body } = await service.request('POST', '/memory/query', { body: { query: 'lighthouse' } });
  expect(body).toMatchObject({ degraded: true, matches: [{ content: text }] });
  expect(vectorsIn(folder)).toEqual([]);
  provider.setMode('ok');
  expect(await service.idle()).toMatchObject({ done: 1 });
  const [expected] = await createHashedEmbedder({ dimensions: 256 }).embed([text], { purpose: 'document' });
  const [stored, ...others] = vectorsIn(folder);
  expect(others).toEqual([]);
  expect(cosine(stored!, expected!)).toBeCloseTo(1, 5);
});

function vectorsIn(folder: string): Float32Array[] {
  return withStore(folder, ({ db }) => storedVectors(db).map(({ embedding }) => embedding));
}
