import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { Redis } from 'ioredis';
import { findInfo } from '../../src/engine/store/store-info.ts';
import { withStore } from '../support/add-checker.ts';
import { expectNoOrphans } from '../support/engine-fixture.ts';
import { startFakeProvider, type FakeChatCall } from '../support/fake-provider.ts';
import { spawnService, startServiceProcess, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

/**
 * What a language model is asked, by the processes that run it: killed before an answer is written, it is asked again
 * and written once.
 */

const redisUrl = inject('redisUrl');
const HOMES = ['Porto', 'Lisbon', 'Braga'].map(
  (town) => `Ana lives in the old town of ${town} near the river and works for the harbour`,
);

function answerTo({ input, instructions }: FakeChatCall): string {
  if (instructions.includes('insight'))
    return JSON.stringify([{ insight: 'Ana moves house often', memories: [1, 2, 3] }]);
  const numbers = [...input.matchAll(/^<<<text (\d+) of /gm)].map(([, text]) => Number(text));
  return JSON.stringify(numbers.map((text) => ({ text, relation: 'contradicts' })));
}

async function prepare() {
  const { chat, url, close } = await startFakeProvider({ dimensions: 256 });
  onTestFinished(close);
  chat.say(answerTo);
  const settings = {
    OM_CONTRADICTIONS: 'llm',
    OM_REFLECTION: 'llm',
    OM_REFLECTION_MIN_MEMORIES: '3',
    OM_REFLECTION_INTERVAL_MINUTES: '1',
    OM_LLM_MODEL: 'a-model',
    OM_LLM_BASE_URL: url,
    OM_LEASE_MS: '4000',
  };
  return { chat, settings, folder: tempFolder() };
}

async function addHomes(api: ServiceProcess): Promise<void> {
  for (const content of HOMES) await api.request('POST', '/memory/add', { body: { content } });
}

/** Three memories that contradict each other and one that rests on all of them, each link once. */
function expectConcluded(folder: string): void {
  withStore(folder, (store) => {
    const types = store.db
      .prepare(
        `SELECT type, count(*) AS n FROM edges WHERE automatic = 1 AND type <> 'waypoint' GROUP BY type ORDER BY type`,
      )
      .all();
    expect(types).toEqual([
      { type: 'contradicts', n: 3 },
      { type: 'derived_from', n: 3 },
    ]);
    expect(store.db.prepare('SELECT count(*) FROM memories').pluck().get()).toBe(4);
    expectNoOrphans(store);
  });
}

const FAULT = { NODE_ENV: 'test', CAIRN_FAILPOINT: 'before-reason-commit:kill:2' };

test('one process, killed between an answer and its commit', async () => {
  const { settings, folder } = await prepare();
  const doomed = spawnService({ folder, settings: { ...settings, ...FAULT } });
  await doomed.ready;
  await addHomes(doomed).catch(() => {}); // It may die before the last was added.
  await doomed.exited;
  const service = await startServiceProcess({ folder, settings });
  await addHomes(service);
  await service.request('POST', '/memory/reflect', { body: {} });
  expect(await service.idle()).toMatchObject({ dead: 0 });
  await service.end('SIGTERM');
  expectConcluded(folder);
});

describe.skipIf(redisUrl === null)('with Redis', () => {
  test('a worker that is killed so leaves its questions to another', async () => {
    const prepared = await prepare();
    const { folder } = prepared;
    const settings = { ...prepared.settings, REDIS_URL: redisUrl as string };
    const api = await startServiceProcess({ folder, settings, command: 'api' });
    const prefix = `cairn-${withStore(folder, (store) => findInfo(store, 'store_id'))}`;
    const doomed = await startServiceProcess({ folder, settings: { ...settings, ...FAULT }, command: 'worker' });
    onTestFinished(async () => {
      await Promise.all([api, doomed].map((process) => process.end('SIGKILL')));
      const redis = new Redis(redisUrl as string);
      const keys = await redis.keys(`${prefix}:*`);
      if (keys.length > 0) await redis.unlink(keys);
      redis.disconnect();
    });
    await addHomes(api);
    expect(await doomed.exited).toMatchObject({ signal: 'SIGKILL' });
    const worker = await startServiceProcess({ folder, settings, command: 'worker' });
    onTestFinished(async () => void (await worker.end('SIGKILL')));
    await api.request('POST', '/memory/reflect', { body: {} });
    expect(await api.idle()).toMatchObject({ dead: 0 });
    await worker.end('SIGTERM');
    await api.end('SIGTERM');
    expectConcluded(folder);
  });
});
