import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { FailpointName } from '../../src/engine/failpoint.ts';
import { readEvents } from '../../src/engine/store/job-timeline.ts';
import { chooseSeed, createAddClient, withStore } from '../support/add-checker.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { expectSoundFleet, failAt, startFleet, type Fleet } from '../support/fleet.ts';
import { canStartRedis } from '../support/redis.ts';
import type { ServiceProcess } from '../support/running-service.ts';
import { fillDisk, mountSmallDisk, unmount } from '../support/small-disk.ts';
import { tempFolder } from '../support/temp-folder.ts';

const DIMENSIONS = 256;
const KEPT_FREE_BYTES = 1024 * 1024;

/** Adds that follow from a seed, sent to whatever API there is. */
function createLoad(fleet: Fleet) {
  let up = Promise.resolve(fleet.api);
  const history = path.join(tempFolder(), 'history.jsonl');
  const seed = chooseSeed();
  const client = createAddClient({ history, seed, concurrency: 16, service: () => up });
  return {
    client,
    /** Adds wait until the returned function names the API that comes next. */
    awaitNextApi(): (next: ServiceProcess) => void {
      const next = Promise.withResolvers<ServiceProcess>();
      up = next.promise;
      return next.resolve;
    },
    finish: (about: string) => expectSoundFleet(fleet, history, `seed ${seed}, ${about}`),
  };
}

async function startProvider() {
  const provider = await startFakeProvider({ dimensions: DIMENSIONS });
  onTestFinished(() => provider.close());
  return { provider, settings: { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url } };
}

const OF_WORKERS: readonly FailpointName[] = [
  'before-embed',
  'after-embed',
  'before-encode-commit',
  'after-encode-commit',
  'during-link',
  'before-ack',
];
const OF_THE_API: readonly FailpointName[] = ['after-accept-commit', 'after-dispatch'];

describe.skipIf(!canStartRedis())('a process that fails', () => {
  test.each(OF_WORKERS)('a worker that is killed, and one that fails, %s: every step happens once', async (name) => {
    const fleet = await startFleet({ settings: { OM_LEASE_MS: '1000' } });
    const { client, finish } = createLoad(fleet);
    const killed = fleet.spawnWorker(failAt(`${name}:kill:2`));
    const adding = client.add(400);
    expect(await killed.exited).toMatchObject({ signal: 'SIGKILL' });
    await fleet.worker(failAt(`${name}:throw:2`));
    await fleet.worker(failAt(`${name}:delay:1`));
    await adding;
    await finish(`${name}: killed, failed, delayed`);
  });

  test.each(OF_THE_API)('an API that is killed %s: what it accepted is finished once', async (name) => {
    const fleet = await startFleet({ workers: 1 });
    await fleet.api.end('SIGTERM');
    const doomed = fleet.spawnApi(failAt(`${name}:kill:3`));
    await doomed.ready;
    const { client, awaitNextApi, finish } = createLoad(fleet);
    const replaced = doomed.exited.then((exit) => ({ exit, next: awaitNextApi() }));
    const adding = client.add(300);
    const { exit, next } = await replaced;
    expect(exit).toMatchObject({ signal: 'SIGKILL' });
    await fleet.spawnApi().ready;
    next(fleet.api);
    await adding;
    await finish(`${name}: killed`);
  });

  test('a worker that was stopped for longer than its lease changes nothing when it goes on', async () => {
    const { provider, settings } = await startProvider();
    const fleet = await startFleet({ settings: { ...settings, OM_LEASE_MS: '1000' }, workers: 1 });
    const { client, finish } = createLoad(fleet);
    const [stopped] = fleet.workers as [ServiceProcess];
    const called = provider.nextCall();
    const release = provider.hold();
    await client.add(128);
    await called;
    stopped.signal('SIGSTOP');
    release();
    await fleet.worker();
    expect(await fleet.api.idle()).toMatchObject({ done: 128, dead: 0 });
    const before = readTimelines(fleet.folder);
    stopped.signal('SIGCONT');
    // It takes its answer from the provider, finds its leases gone, and does its share of what comes next.
    await client.add(64);
    await fleet.api.idle();
    expect(readTimelines(fleet.folder).slice(0, before.length)).toEqual(before);
    expect(before.flatMap((timeline) => readEvents(timeline, 0)).map(({ event }) => event)).toContain('crashed');
    await finish('a worker was stopped for longer than its lease');
  });

  test('a job that kills its worker ends as a dead letter after three crashes alone, and the others are finished', async () => {
    const marker = 'unspeakable';
    const fleet = await startFleet({ settings: { ...(await startProvider()).settings, OM_LEASE_MS: '1000' } });
    let crashes = 0;
    let ended = false;
    /** Each worker has a provider of its own, so that it is known which of them read the text. */
    const startMortalWorker = async (): Promise<void> => {
      const { provider, settings } = await startProvider();
      const worker = fleet.spawnWorker(settings);
      for (;;) {
        const call = await Promise.race([provider.nextCall(), worker.exited]);
        if (!('texts' in call)) return;
        if (!call.texts.some((text) => text.includes(marker)) || ended) continue;
        await worker.end('SIGKILL');
        crashes++;
        return startMortalWorker();
      }
    };
    const mortals = [startMortalWorker(), startMortalWorker()];
    const items = Array.from({ length: 90 }, (_, number) => ({ content: `a harmless text, number ${number}` }));
    items.splice(40, 0, { content: `something ${marker}` });
    const { body } = await fleet.api.request('POST', '/memory/add/batch', { body: { items } });
    const poison = (body['results'] as { job_id: string }[])[40]!.job_id;
    expect(await fleet.api.idle()).toMatchObject({ done: 90, dead: 1 });
    const letters = (await fleet.api.request('GET', '/jobs?state=dead')).body.items;
    expect(letters).toMatchObject([{ id: poison, crashes: 3, error: { code: 'crash' } }]);
    console.log(`the job killed ${crashes} workers; of 90 others, none failed`);
    withStore(fleet.folder, ({ db }) => {
      const died = db.prepare(`SELECT finished_at FROM jobs WHERE state = 'dead'`).pluck().get() as number;
      const last = db.prepare(`SELECT max(finished_at) FROM jobs WHERE state = 'done'`).pluck().get() as number;
      expect(last, 'others waited for it').toBeLessThan(died);
      expect(db.prepare(`SELECT count(*) FROM jobs WHERE state = 'done' AND crashes > 0`).pluck().get()).toBe(0);
    });

    ended = true;
    expect((await fleet.api.request('POST', `/jobs/${poison}/retry`)).status).toBe(200);
    expect(await fleet.api.idle()).toMatchObject({ done: 91, dead: 0 });
    await fleet.stop();
    await Promise.all(mortals);
  });

  test('SIGTERM under load: API and workers answer, hand back and end with 0; a second one ends them at once', async () => {
    const { provider, settings } = await startProvider();
    provider.setMode('slow', { delayMs: 300 });
    const fleet = await startFleet({ settings: { ...settings, OM_LEASE_MS: '2000' }, workers: 2 });
    const { client, awaitNextApi, finish } = createLoad(fleet);
    const adding = client.add(900);
    await client.untilAcknowledged(200);
    const [first, second] = fleet.workers as [ServiceProcess, ServiceProcess];

    expect(await first.end('SIGTERM')).toEqual({ code: 0, signal: null });
    await first.logged('worker_drained');
    second.signal('SIGTERM');
    await second.logged('stopping');
    second.signal('SIGTERM');
    expect([0, 130]).toContain((await second.exited).code);

    const next = awaitNextApi();
    expect(await fleet.api.end('SIGTERM')).toEqual({ code: 0, signal: null });
    withStore(fleet.folder, ({ db }) => {
      const handedBack = db.prepare(`SELECT count(*) FROM jobs WHERE state = 'queued' AND attempts = 0`).pluck().get();
      expect(handedBack).toBeGreaterThan(0);
    });
    await Promise.all([fleet.spawnApi().ready, fleet.worker()]);
    next(fleet.api);
    await adding;
    await finish('SIGTERM for both workers and the API');
  });

  test('on a full disk adds are refused and workers wait; nothing is damaged, and space is all they need', async (context) => {
    const folder = mountSmallDisk();
    if (folder === undefined) {
      console.warn('a small disk cannot be mounted here: the full disk is not tested with workers');
      return context.skip();
    }
    onTestFinished(() => unmount(folder));
    const fleet = await startFleet({ folder, workers: 2, settings: { OM_LEASE_MS: '2000' } });
    const { client, finish } = createLoad(fleet);
    await client.add(300);
    await fleet.api.idle();
    const ballast = path.join(folder, 'ballast');
    fillDisk(ballast, KEPT_FREE_BYTES);
    const adding = client.add(1_200);
    expect((await client.untilAnswered(507)).body).toMatchObject({ code: 'storage_full' });
    expect((await fleet.api.request('GET', '/health')).status).toBe(200);
    const { body } = await fleet.api.request('POST', '/memory/query', {
      body: { query: 'the old harbour', min_score: 0 },
    });
    expect(body.matches.length).toBeGreaterThan(0);
    for (const worker of fleet.workers) expect(worker.obituary).toBeUndefined();
    fs.rmSync(ballast);
    await adding;
    expect(client.acknowledged).toBe(1_500);
    await finish(`a full disk, statuses ${JSON.stringify([...client.statuses])}`);
  });
});

/** What happened to each job, in order of arrival. */
function readTimelines(folder: string): string[] {
  return withStore(folder, ({ db }) => db.prepare('SELECT timeline FROM jobs ORDER BY seq').pluck().all() as string[]);
}
