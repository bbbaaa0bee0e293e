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
  const forbidding = path.join(folder, 'forbidding.json');
  const forbidden = [{ query: 'boat', user_id: 'ana', expected: ['noon'], forbidden: ['sinks'] }];
  fs.writeFileSync(forbidding, JSON.stringify({ name: 'boats', items: forbidden }));
  expect((await cairn('--file', forbidding)).code).toBe(0);
  const { id: bad } = await api.add({ content: 'The boat sinks.', user_id: 'ana' });
  const worse = await cairn('boats');
  expect([worse.code, worse.stdout]).toEqual([1, expect.stringContaining('item 0 shows "sinks"')]);
  await api.request('DELETE', '/evals/boats');
  await api.request('DELETE', `/memory/${bad}`);
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

test('a set is run on a copy of a backup by other settings, which are refused where it falls', async () => {
  const folder = tempFolder();
  const settings = { OM_EMBEDDINGS: 'none' };
  const api = await startApi({ folder, settings });
  onTestFinished(() => api.stop());
  const database = path.join(folder, 'cairn.sqlite');
  const reach = { ...settings, CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY, OM_DB_PATH: database };
  const cairn = (args: readonly string[], other: Readonly<Record<string, string>> = {}) =>
    runCairn(args, { settings: { ...reach, ...other } });
  await api.add({ content: 'The ferry leaves at noon.', user_id: 'ana' });
  await api.add({ content: 'Ferries have bars, and a deck for cars, bicycles and dogs on leads.', user_id: 'ana' });
  const items = [{ query: 'When does a boat or ferry go?', user_id: 'ana', expected: ['leaves at noon'] }];
  await api.request('POST', '/evals', { body: { name: 'trips', items } });
  await api.request('PUT', '/settings/retrieval', { body: { relative_floor: 0.1 } });
  expect((await cairn(['eval'])).stdout).toMatch(/recall +1\.000/);
  const backup = path.join(folder, 'before.sqlite');
  expect((await cairn(['backup', backup])).code).toBe(0);
  const bytes = fs.readFileSync(backup);

  const same = await cairn(['eval', '--copy', backup]);
  expect([same.code, same.stderr]).toEqual([0, '']);
  expect(same.stdout).toMatch(/recall +1\.000 +1\.000/);
  expect(same.stdout).not.toContain('changed since');
  const stricter = await cairn(['eval', '--copy', backup], { OM_MIN_SCORE: '0.99' });
  expect(stricter).toMatchObject({ code: 1, stderr: expect.stringContaining('lower than in the run before: trips') });
  expect(stricter.stdout).toMatch(/recall +0\.000 +1\.000/);
  expect(stricter.stdout).toContain('changed since the run before: settings');

  const apart = await cairn(['eval', '--copy', backup], { OM_DATABASE_URL: 'postgres://cairn@127.0.0.1:1/none' });
  expect([apart.code, apart.stdout]).toEqual([0, expect.stringMatching(/recall +1\.000 +1\.000/)]);

  expect(fs.readFileSync(backup)).toEqual(bytes);
  expect((await api.request('GET', '/evals/trips/runs')).body.items).toHaveLength(1);
  expect(await cairn(['eval', '--copy', path.join(folder, 'none.sqlite')])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('expected a backup in clear'),
  });
});
