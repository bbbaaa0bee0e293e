import { expect, onTestFinished, test } from 'vitest';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

test('recall shows an answer, and asks it again of then and of now', async () => {
  const api = await startApi({ folder: tempFolder() });
  onTestFinished(() => api.stop());
  const cairn = async (...args: string[]) =>
    (await runCairn(['recall', ...args], { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY } })).stdout;
  const { id } = await api.add({ content: 'The harbour ferry leaves at noon.' });
  const asked = await api.request('POST', '/memory/query', { body: { query: 'harbour ferry' } });
  const recallId = asked.body['recall_id'] as string;
  const shown = await cairn(recallId);
  expect(shown).toContain('harbour ferry');
  expect(shown).toContain(id);
  expect(await cairn(recallId, '--replay')).toContain('Nothing differs');
  const added = await api.add({ content: 'The harbour ferry has a bar.' });
  expect(await cairn(recallId, '--replay', 'now')).toMatch(new RegExp(`${added.id} +– → \\d +added`));
  expect(await cairn(recallId, '--feedback', 'used', '--memory', id)).toBe(`${id}  used\n`);
  expect((await api.request('GET', `/recalls/${recallId}`)).body['feedback']).toMatchObject([{ verdict: 'used' }]);
  expect(await cairn(recallId)).toMatch(new RegExp(`${id} .*used`));
  const settings = { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY };
  const alone = await runCairn(['recall', recallId, '--feedback', 'wrong'], { settings });
  expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining('--memory')]);
  expect(JSON.parse(await cairn(recallId, '--json'))).toMatchObject({ recall_id: recallId });
});
