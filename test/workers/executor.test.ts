import { expect, onTestFinished, test } from 'vitest';
import { createDocumentShares } from '../../src/engine/control/document-shares.ts';
import { DAY_MS } from '../../src/engine/dynamics.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { openTenant } from '../../src/engine/tenant-file/open-tenant.ts';
import { silentLogger, systemClock } from '../../src/engine/ports.ts';
import { findInfo, putInfo } from '../../src/engine/store/store-info.ts';
import { openRuntime } from '../../src/workers/runtime.ts';
import { newMemory, openTestEngine } from '../support/engine-fixture.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { seedMemories } from '../support/seed-store.ts';

test('suspects that come while others are alone do not wait where they take a place: they are due again later', async () => {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  const settings = { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url };
  await using fixture = await openTestEngine({ settings });
  fixture.clock.set(systemClock.now());
  for (const content of ['one', 'another']) await fixture.add({ content });
  fixture.store.db.exec('UPDATE jobs SET suspect = 1, dispatched_until = run_at + 15000');
  const { config } = fixture.batch;
  const runtime = openRuntime({ config, logger: silentLogger, metrics: createMetrics(), ledgers: null });
  onTestFinished(() => runtime.drain());
  const named = { kind: 'named', path: fixture.file, step: 'encode', alone: true, linksAtOnce: true } as const;
  const run = (jobNo: number) => runtime.run({ ...named, jobNos: [jobNo] });

  const asked = provider.nextCall();
  const release = provider.hold();
  const first = run(1);
  await asked;
  expect(await run(2)).toBe(0);
  expect(fixture.get('SELECT state, attempts, crashes, dispatched_until FROM jobs WHERE seq = 2')).toEqual({
    state: 'queued',
    attempts: 0,
    crashes: 0,
    dispatched_until: 0,
  });
  expect(fixture.get('SELECT run_at - created_at FROM jobs WHERE seq = 2')).toBeGreaterThan(0);
  release();
  expect(await first).toBe(1);
});

test('a worker reads no document of a tenant whose parser time any process has spent', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none', OM_TENANT_PARSE_SECONDS: '10' } });
  fixture.clock.set(systemClock.now());
  await fixture.tenant.addDocument(newDocument(await upload(fixture.tenant, '# Notes')));
  createDocumentShares(fixture.engine.control, fixture.engine.rates)('default').spendParser(60_000);
  const { config } = fixture.batch;
  const runtime = openRuntime({ config, logger: silentLogger, metrics: createMetrics(), ledgers: null });
  onTestFinished(() => runtime.drain());
  expect(await runtime.run({ kind: 'due', path: fixture.file, step: 'ingest' })).toBe(0);
  expect(fixture.get('SELECT error_code FROM jobs')).toBe('rate_limited');
});

test('what a stop breaks off in one tenant or leaves in the next is done by whoever looks next', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const now = systemClock.now();
  fixture.clock.set(now);
  fixture.engine.control.createTenant('second');
  const files = ['default', 'second'].map((tenant) => fixture.engine.control.findTenantPath(tenant)!);
  const trees = Array.from({ length: 4_001 }, (_, n) => ({ content: `Tree ${n}`, createdAt: now - 100 * DAY_MS }));
  for (const file of files) {
    const { store, close } = openTenant(file, { role: 'worker', identity: null, now });
    await seedMemories(store, trees, now);
    putInfo(store, 'last_decay', '1');
    close();
  }
  const lastDecays = () =>
    files.map((file) => {
      const { store, close } = openTenant(file, { role: 'worker', identity: null, now });
      const last = Number(findInfo(store, 'last_decay'));
      close();
      return last;
    });
  const { config } = fixture.batch;
  const start = () => openRuntime({ config, logger: silentLogger, metrics: createMetrics(), ledgers: null });

  const stopping = start();
  const ticking = stopping.run({ kind: 'tick' });
  await Promise.all([stopping.drain(), ticking]);
  expect(lastDecays()).toEqual([1, 1]);

  const next = start();
  onTestFinished(() => next.drain());
  await next.run({ kind: 'tick' });
  for (const last of lastDecays()) expect(last).toBeGreaterThanOrEqual(now);
});

test('the language model is asked again for a text that another tenant had, and once for one that a tenant has twice', async () => {
  const { chat, url, close } = await startFakeProvider({ dimensions: 256 });
  onTestFinished(close);
  const llm = { OM_LLM_MODEL: 'small', OM_LLM_BASE_URL: url, OM_ENTITY_EXTRACTION: 'llm' };
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none', ...llm } });
  fixture.clock.set(systemClock.now());
  const { control } = fixture.engine;
  control.createTenant('second');
  const runtime = openRuntime({
    config: fixture.batch.config,
    logger: silentLogger,
    metrics: createMetrics(),
    ledgers: null,
  });
  onTestFinished(() => runtime.drain());
  for (const userId of ['ana', 'bo'])
    for (const id of ['default', 'second']) {
      const tenant = await fixture.engine.tenant(id);
      await tenant.addMemories([newMemory({ content: 'Ann lives in Porto.', userId })]);
      expect(await runtime.run({ kind: 'due', path: control.findTenantPath(id)!, step: 'encode' })).toBe(1);
    }
  expect(chat.calls).toHaveLength(2);
  expect(chat.calls[1]!.body).toEqual(chat.calls[0]!.body);
});

test("the calls of one tenant's run are logged with that tenant, whichever run ends first", async () => {
  const { chat, url, close } = await startFakeProvider({ dimensions: 256 });
  onTestFinished(close);
  const llm = { OM_LLM_MODEL: 'small', OM_LLM_BASE_URL: url, OM_ENTITY_EXTRACTION: 'llm' };
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none', ...llm } });
  fixture.clock.set(systemClock.now());
  const { control } = fixture.engine;
  control.createTenant('second');
  const [first, second] = await Promise.all(['default', 'second'].map((id) => fixture.engine.tenant(id)));
  const metrics = createMetrics();
  const runtime = openRuntime({ config: fixture.batch.config, logger: silentLogger, metrics, ledgers: null });
  const encode = (id: string) => runtime.run({ kind: 'due', path: control.findTenantPath(id)!, step: 'encode' });
  await second!.addMemories(['Ann lives in Porto.', 'Bo lives in Oslo.'].map((content) => newMemory({ content })));

  chat.setMode('hang', { times: 1 });
  const running = encode('second');
  // One of its calls is answered, and the other one is still under way.
  await expect.poll(async () => (await metrics.languageModelCalls.get()).values).toMatchObject([{ value: 1 }]);
  expect(await encode('default')).toBe(0);
  expect(await first!.listProviderCalls({}, { limit: 9, offset: 0 })).toEqual({ items: [], total: 0 });
  await Promise.all([runtime.drain(), running]);
  const { items } = await second!.listProviderCalls({}, { limit: 9, offset: 0 });
  expect(items.map(({ purpose, error }) => [purpose, error?.code])).toEqual([
    ['entities', 'unavailable'],
    ['entities', undefined],
  ]);
  expect(await first!.listProviderCalls({}, { limit: 9, offset: 0 })).toMatchObject({ total: 0 });
});
