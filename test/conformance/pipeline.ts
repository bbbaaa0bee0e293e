import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../src/engine/config.ts';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import type { StepPayload } from '../../src/engine/job-payloads.ts';
import { MAX_JOB_IDS, QUEUED_STEPS, type QueuedStep } from '../../src/engine/jobs.ts';
import { assert } from '../../src/engine/errors.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { openEngine } from '../../src/engine/open-engine.ts';
import { silentLogger, systemClock } from '../../src/engine/ports.ts';
import { openStore, type SqliteStore } from '../../src/engine/store/open-store.ts';
import { openRuntime } from '../../src/workers/runtime.ts';
import {
  checkAdds,
  chooseSeed,
  createAddClient,
  describeReport,
  expectFinished,
  expectSound,
  withStore,
} from '../support/add-checker.ts';
import { expectNoOrphans, newMemory } from '../support/engine-fixture.ts';
import { startFakeProvider, type FakeProvider } from '../support/fake-provider.ts';
import { databaseFile, type Exit, type ServiceProcess, type ServiceRequest } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** A service whose work can be held back, so that a test decides what is in the ledger before any of it is done. */
export interface Pipeline {
  readonly folder: string;
  /** The process that serves HTTP now. If one process does everything, `work` and `rest` replace it by another one. */
  readonly api: ServiceProcess;
  /** Starts the processes that run the jobs of the ledger. */
  work(): Promise<void>;
  /** Ends the processes that run jobs, with SIGTERM. */
  rest(): Promise<readonly Exit[]>;
  /**
   * Sends a hint about jobs to the workers as a dispatcher does, whether or not the jobs are due. A hint for which
   * there is no queue is dropped.
   */
  hint(step: QueuedStep, payload: StepPayload): Promise<void>;
}

export interface PipelineOptions {
  readonly folder: string;
  readonly settings: Readonly<Record<string, string>>;
}

const DIMENSIONS = 256;
const ADMIN_KEY = 'an admin key of the tests';

/** Declares the tests that every way of running the jobs of the ledger must pass. */
export function describePipeline(name: string, start: (options: PipelineOptions) => Promise<Pipeline>): void {
  const startHere = (settings: Readonly<Record<string, string>> = {}) => start({ folder: tempFolder(), settings });

  /** Starts the service with a fake provider over real HTTP, whose calls show when work is under way. */
  const startWithProvider = async (settings: Readonly<Record<string, string>> = {}) => {
    const provider = await startFakeProvider({ dimensions: DIMENSIONS });
    onTestFinished(() => provider.close());
    const all = { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url, ...settings };
    return { provider, pipeline: await startHere(all) };
  };

  describe(`${name} as a pipeline`, () => {
    test('finishes everything that was accepted, before it began and while it worked', async () => {
      const pipeline = await startHere();
      const seed = chooseSeed();
      const history = path.join(tempFolder(), 'history.jsonl');
      const client = createAddClient({ history, seed, concurrency: 16, service: async () => pipeline.api });
      await client.add(150);
      await pipeline.work();
      await client.add(150);
      expect(await pipeline.api.idle()).toMatchObject({ done: 300, dead: 0 });
      const report = await checkAdds(pipeline.api, history);
      console.log(`${name}, seed ${seed}: ${describeReport(report)}`);
      expectSound(report);
      await pipeline.rest();
      await pipeline.api.end('SIGTERM');
      expect(expectFinished(pipeline.folder)).toBe(300);
    });

    test('finishes what nobody told it of', async () => {
      const pipeline = await startHere();
      await pipeline.work();
      await addInSilence(pipeline.folder, 100);
      expect(await pipeline.api.idle()).toMatchObject({ done: 100, dead: 0 });
    });

    test('a job that is run twice, later or by two workers at once, changes nothing', async () => {
      const pipeline = await startHere();
      const seed = chooseSeed();
      const history = path.join(tempFolder(), 'history.jsonl');
      const client = createAddClient({ history, seed, concurrency: 16, service: async () => pipeline.api });
      await client.add(256);
      const runElsewhere = startOtherWorker(pipeline.folder);
      const everything = payloadsOf(pipeline.folder);
      const working = pipeline.work();
      for (let round = 0; round < 4; round++) {
        for (const step of QUEUED_STEPS) {
          await Promise.all(
            everything.flatMap((payload) => [
              runElsewhere(step, payload),
              runElsewhere(step, payload),
              pipeline.hint(step, payload),
            ]),
          );
        }
      }
      await working;
      expect(await pipeline.api.idle()).toMatchObject({ done: 256, dead: 0 });

      const before = readEffects(pipeline.folder);
      for (const step of QUEUED_STEPS) {
        for (const payload of everything) {
          await pipeline.hint(step, payload);
          expect(await runElsewhere(step, payload)).toBe(0);
        }
      }
      // Whatever the hints set off is over when what is added after them is done.
      await client.add(64);
      await pipeline.api.idle();
      await pipeline.rest();
      await pipeline.api.end('SIGTERM');
      const { memories, timelines, ...effects } = readEffects(pipeline.folder);
      expect(timelines.slice(0, 256)).toEqual(before.timelines);
      expect(memories).toBe(before.memories + 64);
      expect(effects.vectors.slice(0, before.vectors.length)).toEqual(before.vectors);
      expect(expectFinished(pipeline.folder)).toBe(320);
    });

    test('a large import holds up neither interactive adds, its own tenant’s and another’s, nor the imports of others', async () => {
      const pipeline = await startHere({ OM_API_KEY: ADMIN_KEY });
      const [large, ...small] = createTenants(pipeline.folder, ['a-large-one', 'small-1', 'small-2', 'small-3']);
      assert(large !== undefined, 'each id has a tenant');
      await importAll(pipeline.api, large, 3_200);
      for (const tenant of small) await importAll(pipeline.api, tenant, 100);
      for (const tenant of [large, small[0]]) {
        await Promise.all(
          texts(10, 'asked by a person').map((content) =>
            send(pipeline.api, tenant, 'POST', '/memory/add', { body: { content } }),
          ),
        );
      }
      await pipeline.work();
      for (const tenant of [large, ...small]) await pipeline.api.idle(tenant.headers);

      const imported = endsOf([large], 'bulk');
      const leftAfter = (ends: readonly number[]) => imported.filter((end) => end > Math.max(...ends)).length;
      expect(imported).toHaveLength(3_200);
      const left = {
        interactive: leftAfter(endsOf([large, ...small], 'interactive')),
        small: leftAfter(endsOf(small, 'bulk')),
      };
      console.log(`${name}: left of 3200 when the last interactive add and the small imports were done:`, left);
      expect(left.interactive).toBeGreaterThan(imported.length / 2);
      expect(left.small).toBeGreaterThan(imported.length / 10);
    });

    test('a provider’s outage costs no job an attempt; a text it refuses ends as a dead letter that can be retried or discarded', async () => {
      const { pipeline, provider } = await startWithProvider();
      const jobs = await addTexts(pipeline.api, [...texts(20, 'a signal box'), 'unspeakable one', 'unspeakable two']);
      provider.setMode('refuse_text', { marker: 'unspeakable' });
      provider.setMode('status', { times: 2 });
      await pipeline.work();
      expect(await pipeline.api.idle()).toMatchObject({ done: 20, dead: 2 });
      const list = async () => (await pipeline.api.request('GET', '/jobs?state=dead')).body.items;
      const dead = await list();
      expect(new Set(dead.map(({ id }) => id))).toEqual(new Set(jobs.slice(20)));
      for (const letter of dead) expect(letter).toMatchObject({ error: { code: 'invalid' } });
      const { items } = (await pipeline.api.request('GET', '/jobs?state=done')).body;
      expect(items.map(({ attempts }) => attempts)).toEqual(Array.from({ length: 20 }, () => 0));

      provider.setMode('ok');
      const [retried, discarded] = jobs.slice(20) as [string, string];
      expect((await pipeline.api.request('POST', `/jobs/${retried}/retry`)).status).toBe(200);
      expect((await pipeline.api.request('DELETE', `/jobs/${discarded}`)).status).toBe(200);
      expect(await pipeline.api.idle()).toMatchObject({ done: 21, dead: 0 });
      expect(await list()).toEqual([]);
      const { matches } = (await pipeline.api.request('POST', '/memory/query', { body: { query: 'unspeakable two' } }))
        .body;
      expect(matches.map(({ content }) => content)).toContain('unspeakable two');
    });

    test('a job that is cancelled, waiting or under way, stays cancelled and its memory is found by its words', async () => {
      const { pipeline, provider } = await startWithProvider();
      const jobs = await addTexts(pipeline.api, texts(8, 'a cancelled train'));
      await cancel(pipeline.api, jobs[0]!);
      const release = await workUntilCalled(pipeline, provider);
      await cancel(pipeline.api, jobs[1]!);
      release();
      expect(await pipeline.api.idle()).toMatchObject({ done: 6, cancelled: 2, dead: 0 });
      expect((await pipeline.api.request('POST', `/jobs/${jobs[2]}/cancel`)).status).toBe(409);
      const { matches } = (
        await pipeline.api.request('POST', '/memory/query', { body: { query: 'cancelled train number 1', k: 8 } })
      ).body;
      expect(matches.map(({ content }) => content)).toContain('a cancelled train number 1');
      await pipeline.rest();
      await pipeline.api.end('SIGTERM');
      withStore(pipeline.folder, (store) => {
        expectNoOrphans(store);
        expect(count(store, 'SELECT count(*) FROM vectors')).toBe(6);
      });
    });

    test('SIGTERM under load: what is under way is finished or handed back, uncharged, and goes on later', async () => {
      const { pipeline, provider } = await startWithProvider();
      await importAll(pipeline.api, undefined, 1_000);
      provider.setMode('slow', { delayMs: 200 });
      const called = provider.nextCall();
      await pipeline.work();
      await called;
      for (const exit of await pipeline.rest()) expect(exit).toEqual({ code: 0, signal: null });
      withStore(pipeline.folder, (store) => {
        expect(count(store, `SELECT count(*) FROM jobs WHERE state = 'active' OR lease_owner IS NOT NULL`)).toBe(0);
        expect(count(store, 'SELECT count(*) FROM jobs WHERE suspect = 1 OR attempts > 0 OR crashes > 0')).toBe(0);
        expect(count(store, `SELECT count(*) FROM jobs WHERE state = 'queued'`)).toBeGreaterThan(0);
      });
      provider.setMode('ok');
      await pipeline.work();
      expect(await pipeline.api.idle()).toMatchObject({ done: 1_000, dead: 0 });
    });

    test('a memory that is changed or deleted while its job waits or runs ends as the last word said', async () => {
      const { pipeline, provider } = await startWithProvider();
      const { api } = pipeline;
      const names = ['deleted waiting', 'changed waiting', 'deleted running', 'changed running', 'left alone'];
      const ids = await Promise.all(
        names.map(async (name) => (await send(api, undefined, 'POST', '/memory/add', { body: { content: name } })).id),
      );
      const idOf = (name: string) => `/memory/${ids[names.indexOf(name)]}`;
      const ok = async (method: string, route: string, body?: object) => {
        const reply = await pipeline.api.request(method, route, body ? { body } : {});
        expect(reply.status, reply.text).toBe(200);
      };
      await ok('DELETE', idOf('deleted waiting'));
      await ok('PATCH', idOf('changed waiting'), { content: 'revised before' });
      const release = await workUntilCalled(pipeline, provider);
      await ok('DELETE', idOf('deleted running'));
      await ok('PATCH', idOf('changed running'), { content: 'revised meanwhile' });
      release();
      await pipeline.api.idle();

      for (const name of ['deleted waiting', 'deleted running'])
        expect((await pipeline.api.request('GET', idOf(name))).status).toBe(404);
      const { items } = (await pipeline.api.request('GET', '/memory/all')).body;
      const expected = ['left alone', 'revised before', 'revised meanwhile'];
      expect(items.map(({ content }) => content).sort()).toEqual(expected);
      await pipeline.rest();
      await pipeline.api.end('SIGTERM');
      withStore(pipeline.folder, (store) => {
        expectNoOrphans(store);
        expect(count(store, `SELECT count(*) FROM memory_dynamics WHERE state = 'ready'`)).toBe(3);
        expect(count(store, 'SELECT count(DISTINCT memory) FROM vectors')).toBe(3);
        expect(count(store, 'SELECT count(*) FROM vectors')).toBe(3);
        expect(count(store, `SELECT count(*) FROM jobs WHERE state IN ('queued', 'active', 'failed', 'dead')`)).toBe(0);
        for (const word of ['deleted', 'changed']) {
          expect(store.db.prepare('SELECT rowid FROM memory_text WHERE memory_text MATCH ?').all(word)).toEqual([]);
        }
      });
      // The vectors are those of the new texts: a provider was asked for each.
      const asked = new Set(provider.calls.flatMap((call) => call.texts));
      for (const text of expected) expect(asked).toContain(text);
    });
  });
}

// ── Tenants ──────────────────────────────────────────────────────────────────────────────────────────────────────────

interface TenantKey {
  readonly headers: Readonly<Record<string, string>>;
  readonly file: string;
}

function configOf(folder: string) {
  return readConfig({ OM_DB_PATH: databaseFile(folder), OM_VEC_DIM: String(DIMENSIONS) });
}

function createTenants(folder: string, ids: readonly string[]): TenantKey[] {
  const control = openControlDatabase(configOf(folder), systemClock);
  try {
    return ids.map((id) => {
      control.createTenant(id);
      const { secret } = control.createKey({ tenantId: id, role: 'admin' });
      return { headers: { authorization: `Bearer ${secret}` }, file: control.findTenantPath(id) as string };
    });
  } finally {
    control.close();
  }
}

/** Returns the times at which the jobs of these tenants were done, Unix ms. */
function endsOf(tenants: readonly TenantKey[], kind: 'interactive' | 'bulk'): number[] {
  return tenants.flatMap(({ file }) => {
    const store = openStore(file, { role: 'worker' });
    try {
      return store.db
        .prepare(`SELECT finished_at FROM jobs WHERE state = 'done' AND priority = ?`)
        .pluck()
        .all(kind === 'bulk' ? 1 : 0) as number[];
    } finally {
      store.close();
    }
  });
}

// ── Adding ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function texts(count: number, about: string): string[] {
  return Array.from({ length: count }, (_, number) => `${about} number ${number}`);
}

async function send(
  api: ServiceProcess,
  tenant: TenantKey | undefined,
  method: string,
  route: string,
  request: ServiceRequest = {},
) {
  const reply = await api.request(method, route, { ...request, headers: tenant?.headers ?? {} });
  expect(reply.status, reply.text).toBeLessThan(300);
  return reply.body;
}

/** Adds texts one by one. @returns the ids of their jobs */
async function addTexts(api: ServiceProcess, contents: readonly string[]): Promise<string[]> {
  const jobs: string[] = [];
  for (const content of contents)
    jobs.push((await send(api, undefined, 'POST', '/memory/add', { body: { content } })).job_id);
  return jobs;
}

const BATCH = 100;

async function importAll(api: ServiceProcess, tenant: TenantKey | undefined, total: number): Promise<void> {
  for (let first = 0; first < total; first += BATCH) {
    const items = texts(Math.min(BATCH, total - first), `batch ${first} of an import`).map((content) => ({ content }));
    await send(api, tenant, 'POST', '/memory/add/batch', { body: { items } });
  }
}

/** Adds memories without any hint to the workers, as if the hints had been lost. */
async function addInSilence(folder: string, total: number): Promise<void> {
  const dispatcher = { dispatch() {}, close: async () => {} };
  const engine = await openEngine({ config: configOf(folder), writer: 'inline', dispatcher });
  const items = texts(total, 'nobody was told').map((content) => newMemory({ content }));
  await (await engine.tenant('default')).addMemories(items);
  await engine.close();
}

// ── Working ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Starts the work and waits until it has called the provider, which does not answer yet.
 * @returns a function that lets the provider answer
 */
async function workUntilCalled(pipeline: Pipeline, provider: FakeProvider): Promise<() => void> {
  const called = provider.nextCall();
  const release = provider.hold();
  await pipeline.work();
  await called;
  return release;
}

async function cancel(api: ServiceProcess, job: string): Promise<void> {
  expect((await api.request('POST', `/jobs/${job}/cancel`)).status).toBe(200);
}

/**
 * Starts one more worker in the process of the test.
 * @returns a function that lets the worker run jobs of the default tenant; it resolves with their number
 */
function startOtherWorker(folder: string): (step: QueuedStep, payload: StepPayload) => Promise<number> {
  const config = configOf(folder);
  const runtime = openRuntime({ config, logger: silentLogger, metrics: createMetrics(), ledgers: null });
  onTestFinished(() => runtime.drain());
  const { defaultTenant: file } = config.paths;
  return (step, { jobNos, alone }) =>
    runtime.run({ kind: 'named', path: file, step, jobNos, alone, linksAtOnce: false });
}

/** Returns the hints by which a dispatcher would name all jobs of the default tenant. */
function payloadsOf(folder: string): StepPayload[] {
  const jobNos = withStore(
    folder,
    ({ db }) => db.prepare('SELECT seq FROM jobs ORDER BY seq').pluck().all() as number[],
  );
  const payloads: StepPayload[] = [];
  for (let first = 0; first < jobNos.length; first += MAX_JOB_IDS) {
    payloads.push({ tenant: 'default', jobNos: jobNos.slice(first, first + MAX_JOB_IDS), alone: false });
  }
  return payloads;
}

/** Returns what the jobs have written: the number of memories, all vectors, and the timelines of the jobs. */
function readEffects(folder: string) {
  return withStore(folder, (store) => ({
    memories: count(store, 'SELECT count(*) FROM memories'),
    vectors: store.db.prepare('SELECT vector_no, memory, window_no FROM vectors ORDER BY vector_no').all(),
    timelines: store.db.prepare('SELECT timeline FROM jobs ORDER BY seq').pluck().all(),
  }));
}

function count({ db }: SqliteStore, sql: string): number {
  return db.prepare(sql).pluck().get() as number;
}
