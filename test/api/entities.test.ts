import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
let ids: readonly string[];
beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), workers: true });
  const items = [
    { content: 'Authentication uses JWT.', user_id: 'ann' },
    { content: 'A jwt expires after an hour, and the C++ client checks it in src/auth/check.cpp.', user_id: 'ann' },
    { content: 'JWT is on the agenda.', user_id: 'bob' },
    { content: 'The JWT workshop was yesterday.', user_id: 'ann' },
  ];
  const { body } = await api.request('POST', '/memory/add/batch', { body: { items } });
  ids = body.results.map(({ id }) => id);
  await vi.waitFor(async () => {
    const states = await Promise.all(ids.map(async (id) => (await api.request('GET', `/memory/${id}`)).body.state));
    expect(states).toEqual(ids.map(() => 'ready'));
  }, 120_000);
  await api.request('PATCH', `/memory/${ids[3]!}`, { body: { status: 'archived' } });
});
afterAll(() => api.stop());

const get = async (path: string) => (await api.request('GET', path)).body;

// Of the four memories one is archived, and is neither counted nor shown.
test('lists the names that memories mention, the most mentioned first', async () => {
  expect((await get('/entities?user_id=ann')).items).toEqual([
    { name: 'jwt', label: 'JWT', type: 'technology', mentions: 2 },
    { name: 'authentication', label: 'Authentication', type: 'concept', mentions: 1 },
    { name: 'c++', label: 'C++', type: 'technology', mentions: 1 },
    { name: 'src/auth/check.cpp', label: 'src/auth/check.cpp', type: 'file', mentions: 1 },
  ]);
  // Of all users, one name is one item.
  expect((await get('/entities?q=Jw')).items).toEqual([{ name: 'jwt', label: 'JWT', type: 'technology', mentions: 3 }]);
  expect((await get('/entities?user_id=ann&l=1&u=1')).items).toMatchObject([{ name: 'authentication' }]);
  expect((await get('/entities?user_id=nobody')).items).toEqual([]);
});

test('shows one name with what is stated about it and the memories that can be found', async () => {
  expect(await get('/entities/jwt?user_id=ann')).toEqual({
    name: 'jwt',
    label: 'JWT',
    type: 'technology',
    mentions: 2,
    relations: [{ type: 'uses', direction: 'in', name: 'authentication', label: 'Authentication', memories: 1 }],
    memory_ids: [ids[1], ids[0]],
  });
  expect(await get('/entities/JSON%20Web%20Token?user_id=bob')).toMatchObject({
    name: 'jwt',
    relations: [],
    memory_ids: [ids[2]],
  });
  expect((await get('/entities/c%2B%2B'))['memory_ids']).toEqual([ids[1]]);
  expect((await get('/entities/src%2Fauth%2Fcheck.cpp'))['memory_ids']).toEqual([ids[1]]);
});

test('an unknown name, wrong parameters and a missing key are refused', async () => {
  const status = async (path: string, key?: null) =>
    (await api.request('GET', path, key === null ? { key } : {})).status;
  expect(await status('/entities/nobody')).toBe(404);
  expect(await status('/entities/authentication?user_id=bob')).toBe(404);
  expect(await status('/entities?l=0')).toBe(400);
  expect(await status('/entities?name=jwt')).toBe(400);
  expect(await status(`/entities?q=${'a'.repeat(129)}`)).toBe(400);
  expect(await status('/entities', null)).toBe(401);
  expect(await status('/entities/jwt', null)).toBe(401);
});
