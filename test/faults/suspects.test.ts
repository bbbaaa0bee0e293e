import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { withStore } from '../support/add-checker.ts';
import { startFakeProvider, type FakeCall } from '../support/fake-provider.ts';
import { failAt, startFleet, type Fleet } from '../support/fleet.ts';
import { canStartRedis } from '../support/redis.ts';
import { spawnService, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** As many rows as a worker has under way at once: five jobs of 64. */
const IN_FLIGHT = 320;
const MARKER = 'unspeakable';

async function startProvider() {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  return { provider, settings: { OM_EMBEDDINGS: 'openai', OM_OPENAI_BASE_URL: provider.url } };
}

/** Adds so many texts, with the marker in one of them. @returns the job of that one */
async function addAround(service: ServiceProcess, texts: number, poison?: number): Promise<string | undefined> {
  const items = Array.from({ length: texts }, (_, number) => ({
    content: number === poison ? `something ${MARKER}` : `a harmless text, number ${number}`,
  }));
  const jobs: string[] = [];
  for (let first = 0; first < texts; first += 100) {
    const body = { items: items.slice(first, first + 100) };
    const reply = await service.request('POST', '/memory/add/batch', { body });
    jobs.push(...(reply.body['results'] as { job_id: string }[]).map(({ job_id: id }) => id));
  }
  return poison === undefined ? undefined : jobs[poison];
}

async function until(check: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await check())) await pause(20);
}

const countsOf = async (service: ServiceProcess) => (await service.request('GET', '/jobs?l=1')).body.counts;

describe.skipIf(!canStartRedis())('after a crash', () => {
  /** A worker that is killed while it holds as many rows as it can. */
  async function crashOneWorker(fleet: Fleet): Promise<void> {
    const { provider, settings } = await startProvider();
    provider.hold();
    const worker = await fleet.worker(settings);
    await until(async () => (await countsOf(fleet.api)).active === IN_FLIGHT);
    await worker.end('SIGKILL');
  }

  test('the rows that were in flight cost a provider one call for 64 of them', async () => {
    const { provider, settings } = await startProvider();
    const fleet = await startFleet({ settings: { ...settings, OM_LEASE_MS: '1000' } });
    await addAround(fleet.api, IN_FLIGHT);
    await crashOneWorker(fleet);
    await fleet.worker();
    expect(await fleet.api.idle()).toMatchObject({ done: IN_FLIGHT, dead: 0 });
    expect(provider.calls.map(({ texts }) => texts.length)).toEqual(Array(IN_FLIGHT / 64).fill(64));
    await fleet.stop();
  });

  test('a text that kills its worker is found in six crashes, in which few calls carry less than 64 texts', async () => {
    const fleet = await startFleet({ settings: { ...(await startProvider()).settings, OM_LEASE_MS: '1000' } });
    const poison = await addAround(fleet.api, IN_FLIGHT, 200);
    await crashOneWorker(fleet);
    const calls: FakeCall[] = [];
    let crashes = 1;
    /** Each worker has a provider of its own, so that it is known which of them read the text. */
    const startMortalWorker = async (): Promise<void> => {
      const { provider, settings } = await startProvider();
      const worker = fleet.spawnWorker(settings);
      for (;;) {
        const call = await Promise.race([provider.nextCall(), worker.exited]);
        if (!('texts' in call)) return;
        calls.push(call);
        if (!call.texts.some((text) => text.includes(MARKER))) continue;
        crashes++;
        await worker.end('SIGKILL');
        return startMortalWorker();
      }
    };
    const mortal = startMortalWorker();
    expect(await fleet.api.idle()).toMatchObject({ done: IN_FLIGHT - 1, dead: 1 });
    const letters = (await fleet.api.request('GET', '/jobs?state=dead')).body.items;
    expect(letters).toMatchObject([{ id: poison, crashes: 3, error: { code: 'crash' } }]);
    expect(crashes).toBe(6);
    const sizes = calls.map(({ texts }) => texts.length).toSorted((a, b) => b - a);
    expect(sizes).toEqual([...Array(5).fill(64), ...Array(8).fill(8), ...Array(7 + 3).fill(1)]);
    await fleet.stop();
    await mortal;
    withStore(fleet.folder, ({ db }) =>
      expect(db.prepare('SELECT count(*) FROM jobs WHERE crashes + attempts > 0').pluck().get()).toBe(1),
    );
  });

  test('a text that keeps its worker from ever coming back ends that worker, and after three times alone as a dead letter', async () => {
    const fleet = await startFleet({ settings: { OM_LEASE_MS: '1000' } });
    await addAround(fleet.api, 1, 0);
    const isDead = async () => (await countsOf(fleet.api)).dead === 1;
    const workers: ServiceProcess[] = [];
    while (!(await isDead())) {
      const spinning = await fleet.worker(failAt('before-embed:spin:1'));
      workers.push(spinning);
      await Promise.race([spinning.exited, until(isDead)]);
    }
    expect((await fleet.api.request('GET', '/jobs?state=dead')).body.items).toMatchObject([{ crashes: 3 }]);
    await fleet.stop();
    const hung = workers.filter(({ log }) => log.some(({ msg }) => msg === 'executor_hung'));
    expect(hung).toHaveLength(4);
    for (const worker of hung) expect(await worker.exited).toEqual({ code: 1, signal: null });
  });
});

test('in one process a text that never comes back costs its thread, not the API, and ends as a dead letter', async () => {
  const service = spawnService({
    folder: tempFolder(),
    settings: { ...failAt('before-embed:spin:1'), OM_LEASE_MS: '1000' },
  });
  onTestFinished(async () => void (await service.end('SIGKILL')));
  await service.ready;
  await addAround(service, 1, 0);
  const counts = await service.idle();
  expect(counts).toMatchObject({ dead: 1 });
  expect(service.log.filter(({ msg }) => msg === 'worker_hung')).toHaveLength(4);
  expect((await service.request('GET', '/jobs?state=dead')).body.items).toMatchObject([{ crashes: 3 }]);
  expect((await service.request('GET', '/health')).status).toBe(200);
  expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
});
