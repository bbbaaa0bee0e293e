import { expect, onTestFinished, test } from 'vitest';
import { startFakeProvider } from '../support/fake-provider.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

const INSIGHT = 'Ana travels by rail whenever there is a line';

test('what follows is printed, and why nothing came', async () => {
  const { chat, url, close } = await startFakeProvider({ dimensions: 256 });
  onTestFinished(close);
  const settings = { OM_VEC_DIM: '256', OM_LLM_MODEL: 'a-model', OM_LLM_BASE_URL: url };
  const api = await startApi({ folder: tempFolder(), settings, workers: true });
  onTestFinished(() => api.stop());
  const cairn = (...args: string[]) =>
    runCairn(['reflect', ...args], { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY } });

  expect(await cairn('--user', 'ana')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no memories of this user') as string,
  });
  for (const content of ['Ana took the train to Porto', 'Ana took the train to Lisbon']) {
    await api.add({ content, user_id: 'ana' });
  }
  expect((await cairn('--user', 'ana')).stdout).toBe('Nothing new follows from them.\n');
  await api.add({ content: 'Ana bought a rail card', user_id: 'ana' });
  chat.say(JSON.stringify([{ insight: INSIGHT, memories: [1, 2] }]));
  expect((await cairn('--user', 'ana')).stdout).toMatch(
    new RegExp(`^1 reflection\\n\\n[0-9a-f-]{36}\\n${INSIGHT}\\n$`),
  );
  await api.add({ content: 'Ana sold her car', user_id: 'ana' });
  chat.say('Ana likes trains.');
  expect(await cairn('--user', 'ana')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/job [0-9a-f-]{36} is dead: the language model answered something else/) as string,
  });
});
