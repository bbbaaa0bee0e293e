import { describe, expect, onTestFinished, test } from 'vitest';
import { EngineError } from '../../../src/engine/errors.ts';
import { createProviderHealth, MAX_FAILED_BATCHES } from '../../../src/engine/providers/provider-health.ts';
import type { BatchResult } from '../../../src/engine/batches/batch-context.ts';
import { runBatch } from '../../../src/engine/batches/run-batch.ts';
import { runNextDocument } from '../../../src/engine/batches/run-document.ts';
import { silentLogger } from '../../../src/engine/ports.ts';
import { openTestEngine, type TestEngine, type TestEngineOptions } from '../../support/engine-fixture.ts';
import { startFakeProvider } from '../../support/fake-provider.ts';
import { newDocument, upload } from '../../support/new-document.ts';

const SIZE = 32;
const POISON = 'The unspeakable ferry';
const ferries = (count: number) => Array.from({ length: count }, (_, number) => `The ferry to island ${number}`);

/** An engine whose worker remembers what it learns of the provider, as a runner's does. */
async function openWorker(options: TestEngineOptions = {}) {
  const fixture = await openTestEngine(options);
  onTestFinished(() => fixture.close());
  const warnings: { event: string; fields: object }[] = [];
  const logger = { ...silentLogger, warn: (fields: object, event: string) => void warnings.push({ event, fields }) };
  const context = { ...fixture.batch, logger, provider: createProviderHealth() };
  const work = () => runBatch(context, SIZE);

  /** Runs so many batches as a runner does: after a pause, or with nothing due, later. */
  async function workFor(batches: number): Promise<void> {
    for (let batch = 0; batch < batches; batch++) {
      const { claimed, providerPauseMs } = await work();
      fixture.clock.advance(providerPauseMs ?? (claimed === 0 ? 1_000 : 0));
    }
  }

  async function workOff(): Promise<void> {
    for (let batch = 0; batch < 500; batch++) {
      const { queued, failed } = await fixture.tenant.countJobs();
      if (queued + failed === 0) return;
      await workFor(1);
    }
    throw new Error('the ledger never empties');
  }

  const addAll = async (texts: readonly string[]) => {
    const added = [];
    for (const content of texts) added.push(await fixture.add({ content }));
    return added;
  };
  return { fixture, warnings, work, workFor, workOff, addAll };
}

async function openWithProvider(settings: Readonly<Record<string, string>> = {}) {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  const worker = await openWorker({
    settings: { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url, OM_EMBED_LINGER_MS: '1', ...settings },
  });
  return { provider, ...worker };
}

const suspects = (fixture: TestEngine) => fixture.get<number>('SELECT count(*) FROM jobs WHERE suspect > 0');
const charged = (fixture: TestEngine) =>
  fixture.get<number>(`SELECT count(*) FROM jobs WHERE attempts > 0 OR error IS NOT NULL OR state = 'dead'`);

describe('a text that spoils every reply it is in', () => {
  test.each([
    ['zeros', {}, 'zeros'],
    ['status 500', { status: 500 }, 'HTTP 500'],
  ])('with %s becomes a dead letter with its reason, and the others are embedded', async (_, options, reason) => {
    const { fixture, provider, workOff, addAll } = await openWithProvider({ OM_JOB_ATTEMPTS: '3' });
    provider.setMode('poison', { marker: 'unspeakable', ...options });
    const added = await addAll([...ferries(15), POISON, ...ferries(30).slice(15)]);
    const poison = added[15]!;
    await workOff();
    expect(await fixture.tenant.countJobs()).toMatchObject({ done: 30, dead: 1 });
    expect(await fixture.tenant.getJob(poison.jobId)).toMatchObject({
      state: 'dead',
      attempts: 3,
      error: { code: 'unavailable', message: expect.stringContaining(reason) as string },
    });
    for (const { id, jobId } of added.filter((memory) => memory !== poison)) {
      expect(await fixture.tenant.getJob(jobId)).toMatchObject({ state: 'done', attempts: 0, error: null });
      expect((await fixture.tenant.getMemory(id)).state).toBe('ready');
    }
    const { hits } = await fixture.tenant.query({ query: 'unspeakable', k: 1, filter: {} });
    expect(hits.map(({ memory }) => [memory.id, memory.state])).toEqual([[poison.id, 'failed']]);

    provider.setMode('ok');
    await fixture.tenant.retryJob(poison.jobId);
    await workOff();
    expect((await fixture.tenant.getMemory(poison.id)).state).toBe('ready');
  });

  test('holds up nobody while it waits for its next attempt: the others go on in batches', async () => {
    const { fixture, provider, workFor, work, addAll } = await openWithProvider();
    provider.setMode('poison', { marker: 'unspeakable' });
    const [poison] = await addAll([POISON]);
    await workFor(MAX_FAILED_BATCHES);
    expect(suspects(fixture)).toBe(1);
    expect(await work()).toEqual({ claimed: 1, providerPauseMs: null });
    expect(await fixture.tenant.getJob(poison!.jobId)).toMatchObject({ state: 'failed', attempts: 1 });
    await addAll(ferries(20));
    expect(await work()).toEqual({ claimed: 20, providerPauseMs: null });
    expect(provider.calls.at(-1)?.texts).toHaveLength(20);
  });

  test('is found although it takes the provider down for a while, so that no probe is answered', async () => {
    const { fixture, provider, workFor, work, addAll } = await openWithProvider();
    provider.setMode('poison', { marker: 'unspeakable' });
    const [poison] = await addAll([POISON, ...ferries(2)]);
    await workFor(MAX_FAILED_BATCHES);
    provider.setMode('status', { times: 2 });
    const alone = await work();
    expect(alone.providerPauseMs).not.toBeNull();
    expect(await fixture.tenant.getJob(poison!.jobId)).toMatchObject({ state: 'queued', attempts: 0 });
    // After the pause the others come first.
    fixture.clock.advance(alone.providerPauseMs!);
    await workFor(2);
    expect(await fixture.tenant.countJobs()).toMatchObject({ done: 2, queued: 1 });
    await workFor(1);
    provider.setMode('status');
    expect(await work()).toEqual({ claimed: 1, providerPauseMs: null });
    expect(await fixture.tenant.getJob(poison!.jobId)).toMatchObject({ state: 'failed', attempts: 1 });
  });
});

describe('an outage', () => {
  test('in which whatever is asked is refused (HTTP 400) costs nobody anything, and who is refused afterwards is to blame', async () => {
    const { fixture, provider, workFor, workOff, addAll } = await openWithProvider({ OM_JOB_ATTEMPTS: '1' });
    provider.setMode('status', { status: 400 });
    const added = await addAll([...ferries(15), POISON, ...ferries(40).slice(15)]);
    await workFor(20);
    expect(await fixture.tenant.countJobs()).toMatchObject({ done: 0, dead: 0 });
    expect(charged(fixture)).toBe(0);
    provider.setMode('refuse_text', { marker: 'unspeakable' });
    await workOff();
    expect(await fixture.tenant.countJobs()).toMatchObject({ done: 40, dead: 1 });
    expect(await fixture.tenant.getJob(added[15]!.jobId)).toMatchObject({
      state: 'dead',
      error: { code: 'invalid', message: expect.stringContaining('HTTP 400') as string },
    });
  });

  test('counts against nobody however long it lasts, isolates one batch at most and is caught up with in full batches', async () => {
    const { fixture, warnings, provider, workFor, workOff, addAll } = await openWithProvider({ OM_JOB_ATTEMPTS: '1' });
    provider.setMode('status', { status: 503 });
    await addAll(ferries(200));
    await workFor(100);
    expect(await fixture.tenant.countJobs()).toMatchObject({ queued: 200, dead: 0 });
    expect(charged(fixture)).toBe(0);
    expect(suspects(fixture)).toBe(SIZE);
    expect(warnings[0]).toEqual({ event: 'work_paused', fields: { code: 'unavailable', waitMs: 1_000 } });
    expect(warnings.at(-1)).toEqual({ event: 'work_paused', fields: { code: 'unavailable', waitMs: 30_000 } });

    const callsWhileDown = provider.calls.length;
    provider.setMode('ok');
    await workOff();
    expect(await fixture.tenant.countJobs()).toMatchObject({ done: 200, dead: 0 });
    const sizes = provider.calls.slice(callsWhileDown).map(({ texts }) => texts.length);
    // One batch in eight parts, the rest in full.
    expect(sizes.filter((size) => size === SIZE / 8)).toHaveLength(8);
    expect(sizes.length).toBe(8 + Math.ceil((200 - SIZE) / SIZE));
  });

  test('that comes back just after its end costs one job an attempt at most, and nobody more', async () => {
    const { fixture, provider, workFor, workOff, addAll } = await openWithProvider({ OM_JOB_ATTEMPTS: '5' });
    await addAll(ferries(60));
    provider.setMode('status');
    await workFor(50);
    const attempts = () => fixture.get<number>('SELECT sum(attempts) FROM jobs');
    for (let outage = 1; outage < 5; outage++) {
      provider.setMode('ok', { times: 2 });
      await workFor(25);
      expect(attempts()).toBeLessThanOrEqual(outage);
    }
    expect(await fixture.tenant.countJobs()).toMatchObject({ dead: 0 });
    provider.setMode('ok');
    await workOff();
    expect(await fixture.tenant.countJobs()).toMatchObject({ done: 60, dead: 0 });
  });

  test('of patience isolates nobody', async () => {
    const { fixture, provider, workFor, workOff, addAll } = await openWithProvider();
    provider.setMode('rate_limited');
    await addAll(ferries(20));
    await workFor(20);
    expect(suspects(fixture) + charged(fixture)).toBe(0);
    provider.setMode('ok');
    await workOff();
    expect(provider.calls.at(-1)?.texts).toHaveLength(20);
  });

  test('is told from a full disk, which isolates nobody and is logged as what it is', async () => {
    const full = () => Promise.reject(new EngineError('storage_full', 'the disk is full'));
    const { fixture, warnings, workFor, addAll } = await openWorker({
      embedder: (embedder) => ({ ...embedder, embed: full }),
    });
    await addAll(ferries(5));
    await workFor(10);
    expect(suspects(fixture) + charged(fixture)).toBe(0);
    expect(warnings.map(({ event }) => event)).toEqual(Array(10).fill('work_paused'));
    expect(warnings[0]?.fields).toMatchObject({ code: 'storage_full' });
  });
});

describe('while documents wait to be read or are read', () => {
  const handIn = async ({ tenant }: TestEngine) =>
    tenant.addDocument(newDocument(await upload(tenant, '# Ferries\n\nThey leave at nine.')));
  const addBulk = (fixture: TestEngine, content = 'A ferry of an import') => fixture.add({ content }, { bulk: true });

  test('bulk work waits until none is left, and interactive work does not', async () => {
    const { fixture, work } = await openWorker();
    await handIn(fixture);
    const imported = await addBulk(fixture);
    const added = await fixture.add({ content: 'The ferry to the island' });
    expect(await work()).toMatchObject({ claimed: 1 });
    expect((await fixture.tenant.getJob(added.jobId)).state).toBe('done');

    const { documentParser } = fixture.batch;
    let claimedMeanwhile: number | undefined;
    await runNextDocument(
      {
        ...fixture.batch,
        documentParser: {
          ...documentParser!,
          async parse(request, options) {
            claimedMeanwhile = (await work()).claimed;
            return documentParser!.parse(request, options);
          },
        },
      },
      { alone: false, onClaimed: () => {} },
    );
    expect(claimedMeanwhile).toBe(0);
    await work();
    expect((await fixture.tenant.getJob(imported.jobId)).state).toBe('done');
    expect(await fixture.tenant.countJobs()).toMatchObject({ queued: 0 });
  });

  test('bulk work waits half a minute at most', async () => {
    const { fixture, work } = await openWorker();
    await handIn(fixture);
    await addBulk(fixture);
    fixture.clock.advance(29_999);
    await addBulk(fixture, 'The next ferry of an import');
    expect(await work()).toMatchObject({ claimed: 0 });
    fixture.clock.advance(1);
    expect(await work()).toMatchObject({ claimed: 1 });
    expect(await work()).toMatchObject({ claimed: 0 });
  });

  test('bulk work does not wait where a provider computes its vectors', async () => {
    const { fixture, work } = await openWithProvider();
    await handIn(fixture);
    await addBulk(fixture);
    expect(await work()).toMatchObject({ claimed: 1 });
  });
});

test('links that are owed do not wait behind a job that runs alone', async () => {
  const { fixture, provider, work, addAll } = await openWithProvider();
  const [first] = await addAll(ferries(1));
  await work();
  fixture.store.db.prepare(`UPDATE jobs SET step = 'link', state = 'queued', finished_at = NULL`).run();
  await addAll([POISON]);
  fixture.store.db.prepare(`UPDATE jobs SET suspect = 1 WHERE step = 'encode'`).run();
  provider.setMode('status');
  const expected: BatchResult = { claimed: 1, providerPauseMs: null };
  expect(await work()).toEqual(expected);
  expect((await fixture.tenant.getJob(first!.jobId)).state).toBe('done');
});

test('a ledger whose batches fail is not helped by another whose batches work', () => {
  const health = createProviderHealth();
  expect(health.noteFailedBatch('a')).toBe(1);
  health.noteWorked('b');
  expect(health.noteFailedBatch('a')).toBe(2);
  health.noteWorked('a');
  expect(health.noteFailedBatch('a')).toBe(1);
});

test('a text whose vector is paid for already is counted as taken from the cache, and asks the provider nothing', async () => {
  const { fixture, provider, workOff, addAll } = await openWithProvider();
  await addAll(ferries(3));
  await workOff();
  const calls = provider.calls.length;
  for (const content of ferries(2)) await fixture.add({ content, userId: 'somebody else' });
  await workOff();
  expect(provider.calls.length).toBe(calls);
  const { values } = await fixture.batch.metrics.embeddedTexts.get();
  expect(values).toContainEqual({ labels: { provider: 'openai', source: 'cache' }, value: 2 });
});
