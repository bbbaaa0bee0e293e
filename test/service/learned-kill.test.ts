import { expect, test } from 'vitest';
import { createManualClock, START } from '../support/engine-fixture.ts';
import { type ServiceProcess, spawnService } from '../support/running-service.ts';
import { startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/**
 * An acceptance writes two files, the tenant's and that of the settings. Whatever moment a kill comes at, the state and
 * the defaults can be brought together by asking again, and one step leads back.
 */
const DAY = 86_400_000;
const SETTINGS = { OM_EMBEDDINGS: 'none' };

/** Makes a folder with a proposal, and returns its id. */
async function proposal(folder: string): Promise<string> {
  const clock = createManualClock(START);
  await using api = await startApi({ folder, clock, settings: { ...SETTINGS, OM_API_KEY: '' } });
  const post = async (path: string, body: object) => {
    const reply = await api.request('POST', path, { body, key: null });
    expect(reply.status, reply.text).toBeLessThan(300);
    return reply.body as unknown as { readonly recall_id: string; readonly matches: { readonly id: string }[] };
  };
  const padding = ['', ' and a crossing', ' and crossings for the week', ''];
  const ids: string[] = [];
  for (let number = 0; number < 10; number++) {
    const content = `A harbour ferry notice of number ${number}${padding[number % 4]}.`;
    ids.push(((await post('/memory/add', { content })) as unknown as { id: string }).id);
    clock.advance(5 * DAY);
  }
  for (let turn = 0; turn < 44; turn++) {
    const asked = { query: `harbour ferry notice ${turn}`, k: 10, min_score: 0, reinforce: false };
    const { recall_id: recall } = await post('/memory/query', { ...asked, collapse_similar: false });
    clock.advance(60_000);
    await post(`/recalls/${recall}/feedback`, { verdict: 'used', memory_ids: ids.slice(7) });
    await post(`/recalls/${recall}/feedback`, { verdict: 'useless', memory_ids: ids.slice(0, 7) });
  }
  const { learned } = (await post('/learned', {})) as unknown as { learned: { id: string } };
  return learned.id;
}

test.each(['before-defaults', 'after-defaults'])(
  'a kill %s of an acceptance or its undoing loses no step',
  async (place) => {
    const folder = tempFolder();
    const id = await proposal(folder);
    const killed = async (step: string) => {
      const fault = { NODE_ENV: 'test', CAIRN_FAILPOINT: `${place}:kill:1` };
      const service = spawnService({ folder, settings: { ...SETTINGS, ...fault } });
      await service.ready;
      await expect(service.request('POST', `/learned/${id}/${step}`)).rejects.toThrow();
      expect((await service.exited).signal).toBe('SIGKILL');
    };
    const asked = async (step: string, state: string) => {
      const service = spawnService({ folder, settings: SETTINGS });
      await service.ready;
      const reply = await service.request('POST', `/learned/${id}/${step}`);
      expect([reply.status, reply.body['state']], reply.text).toEqual([200, state]);
      const defaults = await defaultsOf(service);
      const { items } = (await service.request('GET', '/learned')).body;
      expect(items).toMatchObject([{ id, state }]);
      await service.end('SIGTERM');
      return defaults;
    };
    await killed('accept');
    expect(await asked('accept', 'accepted')).toHaveProperty('weights');
    await killed('revert');
    expect(await asked('revert', 'reverted')).toEqual({});
  },
);

const defaultsOf = async (service: ServiceProcess): Promise<object> =>
  (await service.request('GET', '/settings/retrieval')).body;
