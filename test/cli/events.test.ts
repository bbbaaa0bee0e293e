import { expect, onTestFinished, test } from 'vitest';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

test('events are printed oldest first, as lines or as JSON from a cursor on', async () => {
  const api = await startApi({ folder: tempFolder() });
  onTestFinished(() => api.stop());
  const cairn = (...args: string[]) =>
    runCairn(['events', ...args], { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY } });
  const first = await api.add({ content: 'The ferry leaves at noon.', user_id: 'ana' });
  const second = await api.add({ content: 'The ferry leaves at one.' });
  const { stdout } = await cairn();
  expect(stdout.trimEnd().split('\n')).toEqual([
    expect.stringMatching(new RegExp(`^\\S+Z  memory\\.stored +${first.id}  ana$`)),
    expect.stringMatching(new RegExp(`^\\S+Z  memory\\.stored +${second.id}$`)),
  ]);
  const [one] = (await cairn('--user', 'ana', '--json')).stdout.split('\n');
  const { cursor } = JSON.parse(one!) as { cursor: string };
  expect((await cairn('--cursor', cursor)).stdout).toContain(second.id);
  expect((await cairn('--cursor', cursor)).stdout).not.toContain(first.id);
  expect(await cairn('--kinds', 'memory.forgotten')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('memory.stored, memory.ready') as string,
  });
});
