import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

test('a set is stored from a file and run; the next run is compared with it, and a fall is a failure', async () => {
  const folder = tempFolder();
  const api = await startApi({ folder, settings: { OM_EMBEDDINGS: 'none' } });
  onTestFinished(() => api.stop());
  const cairn = (...args: string[]) =>
    runCairn(['eval', ...args], { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY } });
  const file = path.join(folder, 'set.json');
  const items = [
    { query: 'ferry', user_id: 'ana', expected: ['leaves at noon'] },
    { query: 'volcano', expected: [] },
  ];
  fs.writeFileSync(file, JSON.stringify({ name: 'trips', items }));
  const { id } = await api.add({ content: 'The ferry leaves at noon.', user_id: 'ana' });
  const first = await cairn('--file', file);
  expect(first).toMatchObject({ code: 0, stderr: '' });
  expect(first.stdout).toMatch(/trips +now\nitems +2\nrecall +1\.000\nprecision +1\.000\nrightly empty +1\.000/);
  await api.request('DELETE', `/memory/${id}`);
  const second = await cairn('trips');
  expect(second.stdout).toMatch(/recall +0\.000 +1\.000/);
  expect(second.stdout).toContain('item 0 misses "leaves at noon"');
  expect(second).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('lower than in the run before: trips') as string,
  });
  expect(await cairn('other')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no evaluation set') as string,
  });
});
