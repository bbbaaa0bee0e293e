import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

/** The commands that show an admin what wants deciding, what fades, and how the service is set and used. */

let api: TestApi;
const cairn = (...args: string[]) =>
  runCairn(args, { settings: { CAIRN_URL: api.url, CAIRN_API_KEY: ADMIN_KEY, OM_DB_PATH: `${tempFolder()}/none` } });
const remember = async (content: string) =>
  (await api.request('POST', '/memory/add?wait=60000', { body: { content, user_id: 'fox' } })).body.id;

beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true, settings: { OM_CONTRADICTIONS: 'forms' } });
});
afterAll(() => api.stop());

test('contradictions and duplicates list the two sides of each pair', async () => {
  expect((await cairn('contradictions')).stdout).toBe('No contradiction is proposed.\n');
  expect((await cairn('duplicates')).stdout).toBe('No two memories are this similar.\n');
  const first = await remember('I live in Madrid.');
  const second = await remember('I live in Valencia.');
  const pairs = (await cairn('contradictions', '--user', 'fox')).stdout;
  expect(pairs).toMatch(/^fox, by their form$/m);
  for (const id of [first, second]) expect(pairs).toContain(id);
  expect((await cairn('contradictions', '--user', 'nobody')).stdout).toBe('No contradiction is proposed.\n');
  await remember('The spare key lies under the blue flower pot.');
  await remember('The spare key lies under the blue flower pot now.');
  const near = (await cairn('duplicates', '--min-similarity', '0.6')).stdout;
  expect(near).toMatch(/^fox, similarity 0\.\d{3}$/m);
  expect(near).toContain('blue flower pot now.');
  expect(JSON.parse((await cairn('duplicates', '--min-similarity', '0.6', '--json')).stdout)).toMatchObject({
    degraded: false,
  });
});

test('fading tells what would be archived, under the rates that are set and under others', async () => {
  const id = await remember('Yesterday I felt happy at the lake.');
  const asSet = (await cairn('fading', '--below', '0.001')).stdout;
  expect(asSet).toContain('0 memories would be archived by');
  const faster = (await cairn('fading', '--by', '60d', '--lambda', 'episodic=0.5,emotional=0.5', '--below', '0.1'))
    .stdout;
  expect(faster).toMatch(/1 memory would be archived by/);
  expect(faster).toContain(id);
  const refused = await cairn('fading', '--lambda', 'sad=1');
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('expected some of episodic')]);
  expect((await cairn('fading', '--lambda', 'episodic=11')).stderr).toContain('0..10');
});

test('settings names where each value comes from and shows no secret; activity shows the last hour', async () => {
  const { stdout } = await cairn('settings', 'contradictions');
  expect(stdout).toMatch(/^OM_CONTRADICTIONS +forms +the environment$/m);
  const set = (await cairn('settings', '--set')).stdout;
  expect(set).toMatch(/^OM_API_KEY +set, not shown +the environment$/m);
  expect(set).not.toContain(ADMIN_KEY);
  expect(set).not.toMatch(/ default$/m);
  expect((await cairn('settings', 'no-such-words')).stdout).toBe('No setting has these words.\n');
  const shown = await cairn('activity');
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  expect(shown.stdout).toMatch(/^add +\S+ +\d+$/m);
  expect(JSON.parse((await cairn('activity', '--json')).stdout)).toMatchObject({ providers: [] });
});

test('recalls and erasures list what was asked and what was forgotten', async () => {
  expect((await cairn('erasures')).stdout).toBe('Nothing was forgotten yet.\n');
  const id = await remember('The boat is painted red.');
  const asked = await api.request('POST', '/memory/query', { body: { query: 'boat painted', user_id: 'fox' } });
  const recall = String(asked.body['recall_id']);
  await expect.poll(async () => (await cairn('recalls', '--memory', id)).stdout).toContain(recall);
  expect((await cairn('recalls', '--user', 'nobody')).stdout).toBe('No answer is kept.\n');
  const { body } = await api.request('DELETE', `/memory/${id}`);
  const [receipt] = String(body['erasure']).split('.');
  expect((await cairn('erasures')).stdout).toMatch(new RegExp(`^ *1 .*${receipt} +memory +environment +1$`, 'm'));
});
