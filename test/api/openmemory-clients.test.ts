import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), workers: true })));
afterAll(() => api.stop());

const post = (path: string, body?: object) => api.request('POST', path, body === undefined ? {} : { body });

test("an add as OpenMemory's Python client sends it is stored, with a warning for each field without a meaning", async () => {
  const sent = { content: 'Sent by Python.', tags: [], metadata: {}, salience: 0.5, decay_lambda: null };
  const added = await post('/memory/add', sent);
  expect(added.status).toBe(202);
  expect(added.body['warnings']).toEqual([expect.stringMatching(/^salience: .*importance/)]);
  const twice = await post('/memories?wait=60000', { ...sent, decay_lambda: 0.02 });
  expect(twice.body).toMatchObject({ id: added.body.id, deduplicated: true });
  expect(twice.body['warnings']).toHaveLength(2);
  expect((await post('/memory/add', { ...sent, content: 'x', colour: 1 })).body.detail).toContain('"colour"');
  expect((await post('/memory/add', { content: 'Plain.' })).body).not.toHaveProperty('warnings');
});

test("filters that openmemory-js's types have hold, and so does its longest page", async () => {
  for (const [content, importance] of [
    ['The kite is red.', 0.9],
    ['The kite is torn.', 0.1],
  ] as const)
    await post('/memory/add?wait=60000', { content, importance, user_id: 'filters', tags: ['toy'] });
  const ask = async (filters: object) =>
    (await post('/memory/query', { query: 'kite', filters: { user_id: 'filters', min_score: 0, ...filters } })).body
      .matches;
  expect(await ask({ tags: ['toy'] })).toHaveLength(2);
  expect(await ask({ tags: ['toy'], min_salience: 0.5 })).toMatchObject([{ content: 'The kite is red.' }]);
  const listed = await post('/memory/list', { user_id: 'filters', filters: { min_salience: 0.5 } });
  expect(listed.body.items).toHaveLength(1);
  expect((await api.request('GET', '/memory/all?l=5000&user_id=filters')).body.items).toHaveLength(2);
  expect((await api.request('GET', '/users/filters/memories?l=10000')).body.items).toHaveLength(2);
});

test('an idempotency key counts on both names of an add', async () => {
  const headers = { 'idempotency-key': 'both-names' };
  const body = { content: 'Said once.', user_id: 'idem' };
  const first = await api.request('POST', '/memory/add', { body, headers });
  const second = await api.request('POST', '/memories', { body, headers });
  expect([second.headers.get('idempotent-replayed'), second.body.id]).toEqual(['true', first.body.id]);
});

test('/query answers with the matches and a text of them', async () => {
  await post('/memories?wait=60000', { content: 'The spare key lies under the blue pot.', user_id: 'kim' });
  const { body } = await post('/query', { query: 'Where is the spare key?', user_id: 'kim', k: 3 });
  expect(body).toMatchObject({ query: 'Where is the spare key?', user_id: 'kim', k: 3 });
  expect(body['result']).toMatch(/^- \(\d\.\d\d\) The spare key lies under the blue pot\.$/);
  expect(body.matches).toHaveLength(1);
});

test('a summary of a user is made of their memories alone, and counts them', async () => {
  const user_id = 'sam';
  await post('/memory/add?wait=60000', { content: 'Sam likes tea.', user_id, importance: 0.9 });
  await post('/memory/add?wait=60000', {
    content: 'Sam should ask earlier.',
    user_id,
    metadata: { sector: 'reflective' },
  });
  await post('/memory/add?wait=60000', { content: 'Tom likes coffee.', user_id: 'tom' });
  const { body } = await api.request('GET', '/users/sam/summary');
  expect(body).toMatchObject({ user_id, reflection_count: 1, updated_at: expect.any(Number) as unknown });
  const text = body['summary'] as string;
  expect(text).toMatch(/^2 memories: /);
  expect(text).toContain('What was concluded:\n- Sam should ask earlier.');
  expect(text).toContain('What matters most:\n- Sam likes tea.');
  expect(text).not.toContain('coffee');
  const again = await post('/users/sam/summary/regenerate');
  expect(again.body).toEqual({ ok: true, user_id, summary: text, reflection_count: 1 });
  expect((await api.request('GET', '/users/nobody/summary')).status).toBe(404);
});

test('a summary of many rests on the newest', async () => {
  const items = Array.from({ length: 100 }, (_, index) => ({ content: `Note ${index} of Una.`, user_id: 'una' }));
  for (const part of ['a', 'b', 'c'])
    await post('/memory/add/batch', { items: items.map((item) => ({ ...item, content: `${part}: ${item.content}` })) });
  const { body } = await api.request('GET', '/users/una/summary');
  expect(body['summary']).toMatch(/^The newest 200 memories: /);
});

test('a key that is bound to a user reads no summary of another', async () => {
  const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read', userId: 'vera' } as never);
  expect((await api.request('GET', '/users/sam/summary', { key: secret })).status).not.toBe(200);
});

test('a boost of 0 raises neither salience nor strength', async () => {
  const { id } = await api.add({ content: 'Seen and left as it is.' });
  const item = await api.engine.tenant('default').then((tenant) => tenant.getMemory(id));
  const { body } = await post('/memory/reinforce', { id, boost: 0 });
  expect(body.salience).toBeLessThanOrEqual(item.salience);
  expect(body['strength']).toBeLessThanOrEqual(item.strength);
  expect((await post('/memory/reinforce', { id, boost: 0.1 })).body.salience).toBeGreaterThan(item.salience);
});
