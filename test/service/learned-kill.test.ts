import { expect, test } from 'vitest';
import { createManualClock, START } from '../support/engine-fixture.ts';
import { type ServiceProcess, spawnService } from '../support/running-service.ts';
import { startApi } from '../support/start-api.ts';
import { teachRecency } from '../support/teach-weights.ts';
import { tempFolder } from '../support/temp-folder.ts';

/**
 * An acceptance writes two files, the tenant's and that of the settings. Whatever moment a kill comes at, the state and
 * the defaults can be brought together by asking again, and one step leads back.
 */
const SETTINGS = { OM_EMBEDDINGS: 'none' };

/** Makes a folder with a proposal, and returns its id. */
async function proposal(folder: string): Promise<string> {
  const clock = createManualClock(START);
  await using api = await startApi({ folder, clock, settings: SETTINGS });
  await teachRecency(api, clock);
  const { body } = await api.request('POST', '/learned');
  return (body as unknown as { readonly learned: { readonly id: string } }).learned.id;
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
