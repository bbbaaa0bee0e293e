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
/** A life ends within this time after a step began that was chosen for it. */
const MOMENTS_MS = { learn: 600, accept: 60, revert: 60 };
type Step = keyof typeof MOMENTS_MS;
const STEPS: readonly Step[] = ['learn', 'accept', 'revert'];

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
  const killedIn = { learn: 0, accept: 0, revert: 0 };
  let ended = 0;
  for (let life = 0; life < inForm(20); life++) {
    const service = spawnService({ folder, settings: SETTINGS });
    await service.ready;
    if (await settle(service)) ended += 1;
    const chosen = STEPS[life % STEPS.length]!;
    let killed: Promise<unknown> | undefined;
    const begin = (name: Step) => {
      if (name !== chosen || killed !== undefined) return;
      killed = pause(random() * MOMENTS_MS[name]).then(() => service.end('SIGKILL'));
      killedIn[name] += 1;
    };
    try {
      while (service.obituary === undefined) await cycle(service, begin);
    } catch (error) {
      if (service.obituary === undefined && !(error instanceof TypeError)) throw error;
    }
    await killed;
  }
  const service = spawnService({ folder, settings: SETTINGS });
  await service.ready;
  await settle(service);
  await cycle(service);
  await service.end('SIGTERM');
  console.log(`seed ${seed}: killed from ${JSON.stringify(killedIn)} on; ${ended} were ended at the next start`);
});

async function cycle(service: ServiceProcess, begin: (name: Step) => void = () => {}): Promise<void> {
  begin('learn');
  const { status, body, text } = await service.request('POST', '/learned');
  expect(status, text).toBe(200);
  const { learned } = body as unknown as { readonly learned: Learned };
  expect(learned, text).not.toBeNull();
  begin('accept');
  await step(service, learned, 'accept');
  begin('revert');
  await step(service, learned, 'revert');
}

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
