import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../../src/engine/config.ts';
import { controlReembed } from '../../../src/engine/upkeep/reembed.ts';
import { claimJobs } from '../../../src/engine/store/job-claims.ts';
import { insertJob } from '../../../src/engine/store/jobs.ts';
import { tendReembed } from '../../../src/engine/upkeep/tend-reembed.ts';
import { findReembed } from '../../../src/engine/store/reembed.ts';
import { clearRefusals, stopReembed } from '../../../src/engine/commands/reembed.ts';
import { findLiveModel, numbersOf } from '../../../src/engine/store/live-model.ts';
import { openEngine } from '../../../src/engine/open-engine.ts';
import { silentLogger } from '../../../src/engine/ports.ts';
import { listModels } from '../../../src/engine/store/embeddings.ts';
import { STORED_BYTES } from '../../../src/engine/store/vector-parts.ts';
import { type FakeProvider, startFakeProvider } from '../../support/fake-provider.ts';
import { runCommand } from '../../support/run-command.ts';
import {
  createManualClock,
  expectNoOrphans,
  openTestEngine,
  type TestEngine,
  type TestEngineOptions,
} from '../../support/engine-fixture.ts';

/** Texts with near neighbours among them, in several sectors. */
const TEXTS = Array.from({ length: 90 }, (_, i) => {
  const [subject, place] = [
    ['the ferry', 'the tram', 'the night train'][i % 3],
    ['Oslo', 'Bergen', 'Tromso'][(i % 5) % 3],
  ];
  const forms = [
    `I took ${subject} to ${place} yesterday with ${i} others`,
    `${subject} to ${place} leaves from quay ${i % 7}`,
    `How to board ${subject} in ${place}: first buy ticket ${i}, then queue`,
    `I was so happy on ${subject} near ${place} that day ${i}`,
  ];
  return forms[i % 4]!;
});

test('a change of the dimensions: both models at work, one commit, the same as from the start', async () => {
  const { file, clock } = await embeddedBy('256');
  const changed = await open({ file, clock, dimensions: '512' });
  expect(await changed.tenant.embedding()).toMatchObject({
    live: { dimensions: 256 },
    configured: { dimensions: 512 },
    degraded: null,
  });
  expect(await changed.tenant.reembedStatus()).toMatchObject({
    state: 'needed',
    done: 0,
    total: 90,
    estimate: { memories: 90 },
  });
  expect(await modelAsked(changed)).toContain('256 dimensions');

  await tendReembed(changed.maintenance);
  const added = await changed.add({ content: 'A new walk along the harbour of Oslo' });
  const seen = new Set<string>();
  for (let step = 0; (await changed.tenant.reembedStatus()).state !== 'current'; step++) {
    expect(step).toBeLessThan(1_000);
    await changed.runBatch(16);
    changed.clock.advance(200);
    const { live } = await changed.tenant.embedding();
    const asked = await modelAsked(changed);
    expect(asked).toContain(`${live!.dimensions} dimensions`);
    seen.add(asked);
    // Whichever is live has a vector of every memory that is encoded.
    expect(vectorless(changed, findLiveModel(changed.store)!.modelNo)).toEqual([]);
  }
  expect(seen.size).toBe(2);
  expect(changed.memoryNoOf(added.id)).toBe(91);
  expect(changed.store.prepare('SELECT count(*) FROM calibrations WHERE model_no = 2').pluck().get()).toBe(1);
  expectNoOrphans(changed.store);
  await expectAsFromTheStart(changed, '512');
});

test('what is added, changed and deleted meanwhile is as if it had always been so', async () => {
  const { file, clock } = await embeddedBy('256');
  const changed = await open({ file, clock, dimensions: '512' });
  await changed.tenant.startReembed();
  await changed.runBatch(16); // The controller fills its window.
  await changed.runBatch(16);
  const ids = changed.all<{ id: string }>('SELECT id FROM memories ORDER BY seq').map(({ id }) => id);
  // Done already, in the window, and not in it at all.
  for (const place of [2, 40, 88])
    await changed.tenant.patchMemory(ids[place]!, { content: `Quay ${place} is closed for repairs` });
  for (const place of [3, 41, 89]) await changed.tenant.deleteMemory(ids[place]!);
  await changed.add({ content: 'The harbour master of Oslo keeps a list of ferries' });
  await finish(changed);
  expectNoOrphans(changed.store);
  expect(vectorless(changed, 2)).toEqual([]);
  expect(vectorsOf(changed)).toEqual(vectorsOf(await fromTheStart(changed, '512')));
});

test('a patched memory is not given the vectors of its old text by a job that was under way', async () => {
  const { file, clock } = await embeddedBy('256', ['The ferry to Oslo leaves at noon']);
  let patched = false;
  const changed = await open({
    file,
    clock,
    dimensions: '512',
    embedder: (embedder) => ({
      ...embedder,
      async embed(texts, options) {
        const vectors = await embedder.embed(texts, options);
        if (!patched) {
          patched = true;
          const { id } = changed.get<{ id: string; memoryNo: number }>('SELECT id, seq AS memoryNo FROM memories');
          await changed.tenant.patchMemory(id, { content: 'A cat sleeps on the sofa' });
        }
        return vectors;
      },
    }),
  });
  await changed.tenant.startReembed();
  await finish(changed);
  expect(patched).toBe(true);
  await expectAsFromTheStart(changed, '512');
});

test('the progress of linking begins at 0 when the new model goes live', async () => {
  const { file, clock } = await embeddedBy('256');
  const changed = await open({ file, clock, dimensions: '512' });
  await changed.tenant.startReembed();
  let status = await changed.tenant.reembedStatus();
  for (let step = 0; status.phase === 'embed'; step++) {
    expect(step).toBeLessThan(1_000);
    await changed.runBatch(16);
    changed.clock.advance(200);
    status = await changed.tenant.reembedStatus();
  }
  expect(status).toMatchObject({ phase: 'link', done: 0, total: 90, ratePerSecond: null, remainingMs: null });
});

test('a clock that is set back once the new model is live does not put off the end of the change', async () => {
  const { file, clock } = await embeddedBy('256');
  const changed = await open({ file, clock, dimensions: '512' });
  await changed.tenant.startReembed();
  for (let step = 0; (await changed.tenant.reembedStatus()).phase !== 'drop'; step++) {
    expect(step).toBeLessThan(1_000);
    await changed.runBatch(16);
    clock.advance(200);
  }
  clock.advanceDays(-30);
  for (let pauses = 0; (await changed.tenant.reembedStatus()).state !== 'current'; pauses++) {
    expect(pauses).toBeLessThan(10);
    await changed.drain();
    clock.advance(60_000);
  }
  expect(listModels(changed.store)).toHaveLength(1);
});

test('it pauses, goes on, and is given up', async () => {
  const { file, clock } = await embeddedBy('256');
  const changed = await open({ file, clock, dimensions: '512' });
  await expect(changed.tenant.pauseReembed()).rejects.toMatchObject({ code: 'conflict' });
  await expect(changed.tenant.cancelReembed()).rejects.toMatchObject({ code: 'conflict' });
  expect(await changed.tenant.startReembed()).toMatchObject({ state: 'running', phase: 'embed' });
  await changed.runBatch(16);
  await changed.runBatch(16);
  const paused = await changed.tenant.pauseReembed();
  expect(paused).toMatchObject({ state: 'paused', phase: 'embed', total: 90 });
  expect(paused.done).toBeGreaterThan(0);
  expect(paused.done).toBeLessThan(90);
  changed.clock.advance(60_000);
  expect(await changed.drain()).toBe(0);
  expect(await changed.tenant.startReembed()).toMatchObject({ state: 'running', phase: 'embed' });
  await changed.runBatch(16);
  expect(await changed.tenant.cancelReembed()).toMatchObject({ state: 'needed' });
  expect(await changed.drain()).toBe(0);
  // What was embedded is not embedded again.
  const before = vectorNumbers(changed, 2);
  expect(before.length).toBeGreaterThan(0);
  await changed.tenant.startReembed();
  await finish(changed);
  expect(vectorNumbers(changed, 2)).toEqual(expect.arrayContaining(before));
  await expectAsFromTheStart(changed, '512');
});

test('settings that are changed back give it up, and what it left behind goes with the next start', async () => {
  const { file, clock } = await embeddedBy('256');
  const changed = await open({ file, clock, dimensions: '512' });
  await changed.tenant.startReembed();
  await changed.runBatch(16);
  await changed.runBatch(16);
  await changed.close();
  const back = await open({ file, clock, dimensions: '256' });
  await tendReembed(back.maintenance);
  expect(await back.tenant.reembedStatus()).toMatchObject({ state: 'current', failed: 0 });
  expect(await back.drain()).toBe(0);
  expect(listModels(back.store)).toHaveLength(2);
  await back.tenant.startReembed();
  await finish(back);
  expect(listModels(back.store)).toHaveLength(1);
  expectNoOrphans(back.store);
  await expectAsFromTheStart(back, '256');
  // The number of a model that went is never given again.
  await back.close();
  const again = await open({ file, clock, dimensions: '768' });
  expect(listModels(again.store).map(({ modelNo }) => modelNo)).toEqual([1, 3]);
});

test('memories without vectors, added while OM_EMBEDDINGS was none, are embedded', async () => {
  const words = await open({ settings: { OM_EMBEDDINGS: 'none' } });
  for (const text of TEXTS) await words.add({ content: text });
  await words.drain();
  expect(await words.tenant.embedding()).toEqual({ live: null, configured: null, degraded: null });
  await expect(words.tenant.startReembed()).rejects.toMatchObject({ code: 'invalid' });
  await words.close();
  const later = await open({ file: words.file, clock: words.clock, dimensions: '256' });
  expect(vectorsOf(later)).toEqual([]);
  await later.tenant.startReembed();
  await finish(later);
  expect(vectorsOf(later)).toEqual(vectorsOf(await fromTheStart(later, '256')));
});

test('a live model that the settings do not reach leaves words, and says so', async () => {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  const paid = { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url };
  const first = await open({ settings: paid, dimensions: '256' });
  await first.add({ content: 'The ferry to Oslo leaves at noon' });
  await first.drain();
  await first.close();

  const offline = await open({
    file: first.file,
    clock: first.clock,
    dimensions: '512',
    settings: { OM_REEMBED: 'manual' },
  });
  await tendReembed(offline.maintenance);
  expect(await offline.tenant.reembedStatus()).toMatchObject({ state: 'needed' });
  expect((await offline.tenant.embedding()).degraded).toContain('words only');
  const answer = await offline.tenant.query({ query: 'ferry to Oslo', k: 5, filter: {} });
  expect(answer).toMatchObject({ degraded: true, hits: [{ memory: { content: 'The ferry to Oslo leaves at noon' } }] });
  // New ones wait in the space to come, and nothing of it slips into the old one.
  await offline.add({ content: 'The tram to Bergen leaves at one' });
  await offline.drain();
  expect(offline.all('SELECT memory, model_no FROM vectors ORDER BY vector_no')).toEqual([
    { memory: 1, model_no: 1 },
    { memory: 2, model_no: 2 },
  ]);
  await offline.tenant.startReembed();
  await finish(offline);
  expect(await offline.tenant.embedding()).toMatchObject({ live: { provider: 'synthetic' }, degraded: null });
  expect(await offline.tenant.query({ query: 'ferry to Oslo', k: 5, filter: {} })).toMatchObject({ degraded: false });
  await expectAsFromTheStart(offline, '512');
});

test('another model of the same provider answers until the new one is live; one text that it refuses is a dead letter', async () => {
  const { provider, changed } = await changedTo('new');
  await tendReembed(changed.maintenance);
  expect((await changed.tenant.reembedStatus()).state).toBe('needed'); // It costs money, so nobody begins by himself.
  expect(await modelAsked(changed)).toContain('openai old');
  provider.setMode('refuse_text', { marker: 'quay 5' });
  await changed.tenant.startReembed();
  await finish(changed);
  expect(await modelAsked(changed)).toContain('openai new');
  expect(new Set(provider.calls.map(({ body }) => body.model))).toEqual(new Set(['old', 'new']));
  expect(listModels(changed.store).map(({ model }) => model)).toEqual(['new']);
  expect(vectorNumbers(changed, 1)).toEqual([]);
  const refused = changed.all(`SELECT seq FROM memories WHERE content LIKE '%quay 5%'`);
  expect(refused).toHaveLength(1);
  expect(vectorless(changed, 2)).toEqual(refused);
  expect(await changed.tenant.reembedStatus()).toMatchObject({ state: 'current', failed: 1 });
  // Started again once the provider takes it, it is embedded and linked as any other.
  const [dead] = (await changed.tenant.listJobs({ state: 'dead', limit: 10, offset: 0 })).items;
  expect(dead).toMatchObject({ kind: 'reembed', step: 'encode', error: { code: 'invalid' } });
  provider.setMode('ok');
  await changed.tenant.retryJob(dead!.id);
  await changed.drain();
  expect(vectorless(changed, 2)).toEqual([]);
  expectNoOrphans(changed.store);
});

test('the end of a change is logged once, also if the worker has lost its lease', async () => {
  await using fixture = await openTestEngine();
  const { store, batch, clock } = fixture;
  const events: string[] = [];
  const logger = { ...silentLogger, info: (_: object, event: string) => events.push(event) };
  const [claim] = store.write(() => {
    insertJob(store, { id: randomUUID(), kind: 'reembed', step: 'link', bulk: true, trace: null, now: clock.now() });
    return claimJobs(store, { step: 'link', limit: 1, owner: 'w', leaseMs: 1_000, now: clock.now() });
  });
  const control = () => controlReembed({ ...batch, logger }, claim!, () => Promise.resolve('holds'));
  await control();
  // The job is done, so the claim no longer holds it.
  await control();
  expect(events).toEqual(['reembed_finished']);
});

test('a model that refuses more than a few texts does not go live, and nothing is lost', async () => {
  const { provider, changed } = await changedTo('new');
  provider.setMode('refuse_text', { marker: 'a' });
  await changed.tenant.startReembed();
  await work(changed);
  const failed = await changed.tenant.reembedStatus();
  expect(failed).toMatchObject({ state: 'failed', phase: 'embed', live: { model: 'old' }, done: 0, failed: 20 });
  expect(failed.error).toMatch(/refused 20 of 20 memories .*--without-refused/);
  expect(vectorNumbers(changed, 1)).toHaveLength(20);
  expect(await modelAsked(changed)).toContain('openai old');

  // Once it is mended, a start tries the refused memories again.
  provider.setMode('ok');
  expect(await changed.tenant.startReembed()).toMatchObject({ state: 'running', failed: 0, error: null });
  await finish(changed);
  expect(await changed.tenant.reembedStatus()).toMatchObject({
    state: 'current',
    live: { model: 'new' },
    done: 20,
    failed: 0,
  });
  expect(vectorless(changed, 2)).toEqual([]);
  expect((await changed.tenant.countJobs()).dead).toBe(0);
  expectNoOrphans(changed.store);
});

test('it goes live without what it refuses where somebody says so', async () => {
  const { provider, changed } = await changedTo('new');
  provider.setMode('refuse_text', { marker: 'quay' });
  await changed.tenant.startReembed();
  await work(changed);
  expect(await changed.tenant.reembedStatus()).toMatchObject({ state: 'failed', failed: 5 });
  expect(await changed.tenant.startReembed({ withoutRefused: true })).toMatchObject({ state: 'running', failed: 5 });
  await finish(changed);
  expect(await changed.tenant.reembedStatus()).toMatchObject({ state: 'current', done: 15, total: 20, failed: 5 });
  expect(vectorless(changed, 2)).toHaveLength(5);
  // Said while it runs, it holds as well.
  const { provider: other, changed: later } = await changedTo('new');
  other.setMode('refuse_text', { marker: 'quay' });
  await later.tenant.startReembed();
  await later.runBatch(4);
  await later.tenant.startReembed({ withoutRefused: true });
  await finish(later);
  expect(await later.tenant.reembedStatus()).toMatchObject({ live: { model: 'new' }, failed: 5 });
});

test('what one model refused is offered to the next, new memories as well', async () => {
  const { provider, changed } = await changedTo('new');
  provider.setMode('refuse_text', { marker: 'a' });
  const added = await changed.add({ content: 'A late note about the harbour' });
  await changed.tenant.startReembed();
  await work(changed);
  expect((await changed.tenant.getMemory(added.id)).state).toBe('failed');
  expect((await changed.tenant.countJobs()).dead).toBe(22); // The controller is one.
  await changed.close();

  provider.setMode('ok');
  const next = await open({ file: changed.file, clock: changed.clock, settings: by(provider, 'next') });
  await next.tenant.startReembed();
  await finish(next);
  expect(await next.tenant.reembedStatus()).toMatchObject({
    state: 'current',
    live: { model: 'next' },
    done: 21,
    failed: 0,
  });
  expect((await next.tenant.getMemory(added.id)).state).toBe('ready');
  const { modelNo } = findLiveModel(next.store)!;
  expect(vectorless(next, modelNo)).toEqual([]);
  expect((await next.tenant.countJobs()).dead).toBe(0);
});

test('memories that killed their workers do not hold up a change, nor are they tried again', async () => {
  const { changed } = await changedTo('new');
  for (const name of ['one', 'two', 'three']) {
    const { jobNo } = await changed.add({ content: `A memory that kills, number ${name}` });
    changed.store.write(() =>
      changed.store
        .prepare(`UPDATE jobs SET state = 'dead', error_code = 'crash', finished_at = 1 WHERE seq = ?`)
        .run(jobNo),
    );
  }
  await changed.tenant.startReembed();
  await finish(changed);
  expect(await changed.tenant.reembedStatus()).toMatchObject({
    state: 'current',
    live: { model: 'new' },
    done: 20,
    failed: 3,
  });
});

test('a change that is given up forgets what was refused', async () => {
  const { provider, changed } = await changedTo('new');
  provider.setMode('refuse_text', { marker: 'a' });
  await changed.tenant.startReembed();
  await work(changed);
  expect(await changed.tenant.cancelReembed()).toMatchObject({ state: 'needed', done: 0, failed: 0 });
  expect((await changed.tenant.countJobs()).dead).toBe(0);
});

test('memories that other settings left without vectors are counted, and filled in where that costs nothing', async () => {
  const words = await embeddedBy('256').then(({ file, clock }) =>
    open({ file, clock, settings: { OM_EMBEDDINGS: 'none' } }),
  );
  await tendReembed(words.maintenance);
  for (const place of ['Narvik', 'Molde']) await words.add({ content: `The ferry to ${place} leaves at dawn` });
  await words.drain();
  await words.close();

  const { file, clock } = words;
  const back = await open({ file, clock });
  expect(await back.tenant.reembedStatus()).toMatchObject({
    state: 'needed',
    done: 90,
    total: 92,
    failed: 0,
    estimate: { memories: 2 },
  });
  await tendReembed({ ...back.maintenance, config: { ...back.maintenance.config, OM_REEMBED: 'manual' } });
  expect((await back.tenant.reembedStatus()).state).toBe('needed');
  await back.close();

  const between = await open({ file, clock, settings: { OM_EMBEDDINGS: 'none' } });
  await tendReembed(between.maintenance);
  await between.close();
  const auto = await open({ file, clock });
  await tendReembed(auto.maintenance);
  await finish(auto);
  expect(await auto.tenant.reembedStatus()).toMatchObject({ state: 'current', done: 92, estimate: null });
  expect(vectorsOf(auto)).toEqual(vectorsOf(await fromTheStart(auto, '256')));
});

test('what is being added, was refused or is done is no gap', async () => {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  const fixture = await open({ settings: by(provider, 'only') });
  provider.setMode('refuse_text', { marker: 'quay' });
  await fixture.add({ content: 'The quay of Oslo' });
  await fixture.add({ content: 'The harbour of Oslo' });
  await fixture.drain();
  await fixture.add({ content: 'The lighthouse of Oslo' });
  expect(await fixture.tenant.reembedStatus()).toMatchObject({ state: 'current', done: 1, total: 3, failed: 1 });
});

test('the start says how many memories have no vectors', async () => {
  const { file, clock } = await embeddedBy('256', ['The ferry to Oslo leaves at noon']);
  const words = await open({ file, clock, settings: { OM_EMBEDDINGS: 'none' } });
  await words.add({ content: 'The tram to Bergen leaves at one' });
  await words.drain();
  await words.close();
  const warnings: unknown[] = [];
  const logger = { ...silentLogger, warn: (fields: object, event: string) => warnings.push([event, fields]) };
  const config = readConfig({ OM_VEC_DIM: '256', OM_DB_PATH: file });
  const engine = await openEngine({ config, clock, logger, writer: 'inline' });
  await engine.close();
  expect(warnings).toContainEqual(['memories_without_vectors', { memories: 1, until: 'cairn reembed' }]);
});

test('a start with another model takes the place of a change that has not gone live', async () => {
  const { file, clock } = await embeddedBy('256');
  const first = await open({ file, clock, dimensions: '512' });
  await first.tenant.startReembed();
  await first.runBatch(16);
  await first.close();
  const second = await open({ file, clock, dimensions: '768', settings: { OM_REEMBED: 'manual' } });
  expect(await second.tenant.reembedStatus()).toMatchObject({ state: 'running', configured: { dimensions: 768 } });
  expect(await second.tenant.startReembed()).toMatchObject({ state: 'running', phase: 'embed', done: 0 });
  await tendReembed(second.maintenance);
  await finish(second);
  expect((await second.tenant.embedding()).live).toMatchObject({ dimensions: 768 });
  expect(listModels(second.store)).toHaveLength(1);
  await expectAsFromTheStart(second, '768');
});

test('a model that has gone live is finished before another takes its place', async () => {
  const { file, clock } = await embeddedBy('256');
  const first = await open({ file, clock, dimensions: '512' });
  await first.tenant.startReembed();
  while ((await first.tenant.embedding()).live?.dimensions === 256) {
    await first.runBatch(64);
    clock.advance(200);
  }
  await first.close();
  const second = await open({ file, clock, dimensions: '768' });
  await expect(second.tenant.startReembed()).rejects.toMatchObject({ code: 'conflict' });
});

test('workers with other settings leave a change alone until those it is for have been silent', async () => {
  const { file, clock } = await embeddedBy('256');
  const right = await open({ file, clock, dimensions: '512' });
  const wrong = await open({ file, clock, dimensions: '256' });
  const beside = ({ maintenance }: TestEngine) => ({
    ...maintenance,
    config: { ...maintenance.config, REDIS_URL: 'redis://127.0.0.1' },
  });
  await tendReembed(beside(wrong)); // It was there first, and shares its queues with others.
  await right.tenant.startReembed();
  for (let minute = 0; minute < 20; minute++) {
    await tendReembed(beside(wrong));
    clock.advance(60_000);
    if (minute % 4 === 3) await tendReembed(beside(right));
  }
  expect(await right.tenant.reembedStatus()).toMatchObject({ state: 'running', phase: 'embed' });
  await wrong.runBatch(16); // It hands on what it cannot do.
  clock.advance(10_000);
  await finish(right);
  // Nor does one that starts later begin to change the model back.
  const late = await open({ file, clock, dimensions: '256' });
  await tendReembed(beside(late));
  expect(await late.tenant.reembedStatus()).toMatchObject({ state: 'needed', phase: null });
  clock.advance(300_000);
  await tendReembed(beside(late));
  expect(await late.tenant.reembedStatus()).toMatchObject({ state: 'running', phase: 'embed' });
});

test('OM_EMBEDDINGS=none gives up a change that has not gone live', async () => {
  const { file, clock } = await embeddedBy('256');
  const changed = await open({ file, clock, dimensions: '512' });
  await changed.tenant.startReembed();
  await changed.runBatch(16);
  await changed.close();
  const words = await open({ file, clock, settings: { OM_EMBEDDINGS: 'none' } });
  expect(await words.tenant.countWaitingJobs()).toBeGreaterThan(0);
  await tendReembed(words.maintenance);
  expect(await words.tenant.reembedStatus()).toMatchObject({ state: 'current', live: null });
  expect(await words.tenant.countWaitingJobs()).toBe(0);
});

/** Twenty memories by one model of a provider, opened with another model of it. */
async function changedTo(model: string) {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  const first = await open({ settings: by(provider, 'old') });
  for (const text of TEXTS.slice(0, 20)) await first.add({ content: text });
  await first.drain();
  await first.close();
  return { provider, changed: await open({ file: first.file, clock: first.clock, settings: by(provider, model) }) };
}

function by(provider: FakeProvider, model: string) {
  return {
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_OPENAI_MODEL: model,
    OM_EMBED_LINGER_MS: '0',
  };
}

/** Works off what comes due within half a minute. */
async function work(fixture: TestEngine): Promise<void> {
  for (let second = 0; second < 30; second++) {
    await fixture.drain(16);
    fixture.clock.advance(1_000);
  }
}

/** A file whose memories are embedded and linked. */
async function embeddedBy(dimensions: string, texts: readonly string[] = TEXTS) {
  const fixture = await open({ dimensions });
  for (const text of texts) await fixture.add({ content: text });
  await fixture.drain();
  await fixture.close();
  return fixture;
}

async function open({
  dimensions = '256',
  settings = {},
  ...options
}: TestEngineOptions & { dimensions?: string }): Promise<TestEngine> {
  const fixture = await openTestEngine({ ...options, settings: { OM_VEC_DIM: dimensions, ...settings } });
  onTestFinished(() => fixture.close());
  return fixture;
}

/** Works until the change of the model is at its end, a second at a time. */
async function finish(fixture: TestEngine): Promise<void> {
  for (let round = 0; round < 100; round++) {
    await fixture.drain(16);
    if ((await fixture.tenant.reembedStatus()).state === 'current') return;
    fixture.clock.advance(1_000);
  }
  throw new Error(`not finished: ${JSON.stringify(await fixture.tenant.reembedStatus())}`);
}

/** The model that a query asked for its vector. */
async function modelAsked({ tenant }: TestEngine): Promise<string> {
  const { trace } = await tenant.query({
    query: 'the ferry to Oslo',
    k: 5,
    filter: {},
    explain: true,
    reinforce: false,
  });
  return trace!.find(({ stage }) => stage === 'embed')!.note!;
}

/** Finished memories without a vector of this model. */
function vectorless(fixture: TestEngine, modelNo: number): unknown[] {
  return fixture.all(
    `SELECT seq FROM memory_dynamics WHERE state = 'ready' AND seq NOT IN (SELECT memory FROM vectors WHERE model_no = ?)`,
    modelNo,
  );
}

function vectorNumbers(fixture: TestEngine, modelNo: number): unknown[] {
  return fixture.all('SELECT vector_no FROM vectors WHERE model_no = ? ORDER BY vector_no', modelNo);
}

/** By content, since numbers differ between files. */
function vectorsOf(fixture: TestEngine): unknown[] {
  return fixture.all(
    `SELECT m.content, o.dimensions, v.window_no, hex(${STORED_BYTES}) AS bytes
     FROM vectors v JOIN memories m ON m.seq = v.memory JOIN models o ON o.model_no = v.model_no
     ORDER BY m.content, m.seq, v.window_no`,
  );
}

function waypointsOf(fixture: TestEngine): unknown[] {
  return fixture.all(
    `SELECT s.content AS src, d.content AS dst, e.similarity, e.weight, e.automatic
     FROM edges e JOIN memories s ON s.seq = e.src JOIN memories d ON d.seq = e.dst ORDER BY s.seq, d.seq`,
  );
}

/** The same memories in a file that never knew another model. */
async function fromTheStart(fixture: TestEngine, dimensions: string): Promise<TestEngine> {
  const fresh = await open({ dimensions, clock: createManualClock() });
  for (const { content } of fixture.all<{ content: string }>('SELECT content FROM memories ORDER BY seq'))
    await fresh.add({ content });
  await fresh.drain();
  return fresh;
}

async function expectAsFromTheStart(fixture: TestEngine, dimensions: string): Promise<void> {
  const fresh = await fromTheStart(fixture, dimensions);
  expect(vectorsOf(fixture)).toEqual(vectorsOf(fresh));
  expect(waypointsOf(fixture)).toEqual(waypointsOf(fresh));
}

/** Adds refused jobs, which ended now: of one memory, or of the first twenty in turn. */
function refuse({ store, clock }: TestEngine, kind: string, count: number, memory: number | null = null): void {
  store.write(() =>
    store
      .prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
         INSERT INTO jobs (uuid, kind, memory, step, state, error_code, run_at, created_at, updated_at, finished_at)
         SELECT randomblob(16), ?, coalesce(?, 1 + n % 20), 'encode', 'dead', 'unprocessable', 0, 0, 0, ? FROM numbers`,
      )
      .run(count, kind, memory, clock.now()),
  );
}

test('no commit deletes or tries again more than 500 of the refused memories', async () => {
  const { changed } = await changedTo('new');
  const [since, target] = [changed.clock.now(), numbersOf(changed.batch.open().configuredModels!)];
  const left = (state: string) => changed.get<number>(`SELECT count(*) FROM jobs WHERE state = '${state}'`);
  refuse(changed, 'reembed', 700);
  const clear = () => runCommand(changed, (context) => clearRefusals(context, { target, since, after: null })).isDone;
  expect([clear(), left('dead'), clear(), left('dead')]).toEqual([false, 200, true, 0]);
  refuse(changed, 'reembed', 1_200);
  refuse(changed, 'memory', 1);
  await changed.tenant.startReembed();
  expect([left('dead'), left('queued')]).toEqual([0, 2]);
});

test('of a memory that was refused again after each change only the newest job is tried again', async () => {
  const { changed } = await changedTo('new');
  refuse(changed, 'memory', 2, 1);
  refuse(changed, 'memory', 1_300, 2);
  await changed.tenant.startReembed();
  const queued = changed.all("SELECT memory FROM jobs WHERE state = 'queued' AND memory > 0 ORDER BY memory");
  expect(queued).toEqual([{ memory: 1 }, { memory: 2 }]);
  // Those before the newest would count as memories that the model refused, which was not asked.
  expect(changed.get("SELECT count(*) FROM jobs WHERE state = 'dead'")).toBe(0);
});

test('a memory that was refused, and then changed and embedded, gets vectors of the next model', async () => {
  const { changed } = await changedTo('new');
  changed.store.write(() =>
    changed.store
      .prepare(
        `INSERT INTO jobs (uuid, kind, memory, step, state, error_code, run_at, created_at, updated_at, finished_at)
         SELECT randomblob(16), 'memory', seq, 'encode', 'dead', 'unprocessable', 0, 0, 0, 1 FROM memories WHERE seq <= 3
         UNION ALL SELECT randomblob(16), 'memory', seq, 'done', 'done', NULL, 0, 0, 0, 2 FROM memories WHERE seq <= 3`,
      )
      .run(),
  );
  await changed.tenant.startReembed();
  await finish(changed);
  expect(await changed.tenant.reembedStatus()).toMatchObject({ state: 'current', failed: 0 });
  expect(vectorless(changed, 2)).toEqual([]);
});

test('no commit of a cancellation deletes more than 500 of the refused memories', async () => {
  const { changed } = await changedTo('new');
  await changed.tenant.startReembed();
  refuse(changed, 'reembed', 1_200, 1);
  const dead = () => changed.get<number>("SELECT count(*) FROM jobs WHERE state = 'dead'");
  const stop = () => runCommand(changed, (context) => stopReembed(context));
  expect([stop(), dead(), stop(), dead()]).toEqual([false, 700, false, 200]);
  await changed.tenant.cancelReembed();
  expect(dead()).toBe(0);
  expect(findReembed(changed.store)).toBeUndefined();
});
