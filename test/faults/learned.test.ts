import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { chooseSeed } from '../support/add-checker.ts';
import { createManualClock, START } from '../support/engine-fixture.ts';
import { inForm } from '../support/fault-form.ts';
import { type ServiceProcess, spawnService } from '../support/running-service.ts';
import { startApi } from '../support/start-api.ts';
import { teachRecency } from '../support/teach-weights.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** The recalls that are learned from are older than the service. */
const SETTINGS = { OM_EMBEDDINGS: 'none', OM_RECALL_DAYS: '3650' };
/** A life ends within this time after its first step. */
const MOMENT_MS = 250;

interface Learned {
  readonly id: string;
  readonly state: string;
  readonly after: { readonly weights: object; readonly min_score: number };
}

test(`${inForm(20)} kills while weights are learned, accepted and reverted: each step is whole or can be ended`, async () => {
  const seed = chooseSeed();
  const random = createRandom(seed);
  const folder = tempFolder();
  {
    const clock = createManualClock(START);
    await using api = await startApi({ folder, clock, settings: SETTINGS });
    await teachRecency(api, clock);
  }
  const steps = { learn: 0, accept: 0, revert: 0, ended: 0 };
  for (let life = 0; life <= inForm(20); life++) {
    const service = spawnService({ folder, settings: SETTINGS });
    await service.ready;
    if (await settle(service)) steps.ended += 1;
    const end = life === inForm(20) ? undefined : pause(random() * MOMENT_MS).then(() => service.end('SIGKILL'));
    await (end === undefined ? cycle(service) : cycleUntilKilled(service));
    await (end ?? service.end('SIGTERM'));
  }
  console.log(`seed ${seed}: ${JSON.stringify(steps)}`);

  async function cycleUntilKilled(service: ServiceProcess): Promise<void> {
    try {
      for (;;) await cycle(service);
    } catch (error) {
      if (service.obituary === undefined && !(error instanceof TypeError)) throw error;
    }
  }

  async function cycle(service: ServiceProcess): Promise<void> {
    const { status, body, text } = await service.request('POST', '/learned');
    expect(status, text).toBe(200);
    const { learned } = body as unknown as { readonly learned: Learned };
    expect(learned, text).not.toBeNull();
    steps.learn += 1;
    await step(service, learned, 'accept');
    steps.accept += 1;
    await step(service, learned, 'revert');
    steps.revert += 1;
  }
});

/** Brings what a kill broke off to its end, whatever moment it came at. @returns whether anything was broken off */
async function settle(service: ServiceProcess): Promise<boolean> {
  const { items } = (await service.request('GET', '/learned')).body as unknown as {
    readonly items: readonly Learned[];
  };
  expect(items.filter(({ state }) => state !== 'reverted').length).toBeLessThanOrEqual(1);
  const open = items.find(({ state }) => state !== 'reverted');
  if (open === undefined) {
    expect(await defaultsOf(service)).toEqual({});
    return false;
  }
  if (open.state === 'proposed') await step(service, open, 'accept');
  await step(service, open, 'revert');
  return true;
}

async function step(service: ServiceProcess, { id, after }: Learned, name: 'accept' | 'revert'): Promise<void> {
  const { status, text } = await service.request('POST', `/learned/${id}/${name}`);
  expect(status, text).toBe(200);
  const { weights, min_score } = after;
  expect(await defaultsOf(service)).toEqual(name === 'accept' ? { weights, min_score } : {});
}

const defaultsOf = async (service: ServiceProcess): Promise<object> =>
  (await service.request('GET', '/settings/retrieval')).body;
