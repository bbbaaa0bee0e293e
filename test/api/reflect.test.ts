import { expect, onTestFinished, test } from 'vitest';
import { startFakeProvider, type FakeProvider } from '../support/fake-provider.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const INSIGHT = 'Ana travels by rail whenever there is a line';

async function start({ workers = true } = {}): Promise<{ api: TestApi; chat: FakeProvider['chat']; ids: string[] }> {
  const { chat, url, close } = await startFakeProvider({ dimensions: 256 });
  onTestFinished(close);
  chat.say(JSON.stringify([{ insight: INSIGHT, memories: [1, 2] }]));
  const settings = { OM_VEC_DIM: '256', OM_LLM_MODEL: 'a-model', OM_LLM_BASE_URL: url };
  const api = await startApi({ folder: tempFolder(), settings, workers });
  onTestFinished(() => api.stop());
  const ids: string[] = [];
  for (const content of ['Ana took the train to Porto', 'Ana took the train to Lisbon']) {
    ids.push((await api.add({ content, user_id: 'ana' })).id);
  }
  return { api, chat, ids };
}

test('a reflection is asked for and waited for, and leads to its sources', async () => {
  const { api, ids } = await start();
  const { status, body, headers } = await api.request('POST', '/memory/reflect?wait=60000', {
    body: { user_id: 'ana' },
  });
  expect([status, body]).toMatchObject([
    200,
    { state: 'done', reflections: [{ content: INSIGHT, type: 'reflection' }] },
  ]);
  expect(headers.get('location')).toBe(`/jobs/${body.job_id}`);
  const [{ id }] = body['reflections'] as [{ id: string }];
  const links = (await api.request('GET', `/memory/${id}/links`)).body.items as unknown as {
    type: string;
    id: string;
  }[];
  expect(links.filter(({ type }) => type === 'derived_from')).toMatchObject(
    ids.toSorted().map((source) => ({ id: source, direction: 'out', automatic: true })),
  );
  const jobs = await api.request('GET', '/jobs?kind=reflection');
  expect(jobs.body).toMatchObject({ total: 1, items: [{ id: body.job_id, step: 'done', memory_id: null }] });
  await expect
    .poll(async () => (await api.request('GET', '/embeddings/log')).body.items)
    .toMatchObject([{ purpose: 'reflection', texts: 1 }]);
  expect((await api.request('GET', '/embeddings/stats')).body.items).toMatchObject([
    { purpose: 'reflection', calls: 1 },
  ]);
});

test('one that fails says why', async () => {
  const { api, chat } = await start();
  chat.say('Ana likes trains.');
  const { status, body } = await api.request('POST', '/memory/reflect?wait=60000', { body: { user_id: 'ana' } });
  expect([status, body]).toMatchObject([200, { state: 'dead', reflections: [], error: { code: 'invalid' } }]);
});

test('a key that is bound to a user follows the one that it asked for until it is done', async () => {
  const { api } = await start({ workers: false });
  const keyOf = (userId: string) => api.engine.control.createKey({ tenantId: 'default', role: 'write', userId }).secret;
  const [ana, eve] = [keyOf('ana'), keyOf('eve')];
  const { body } = await api.request('POST', '/memory/reflect', { body: {}, key: ana });
  const job = (key: string) => api.request('GET', `/jobs/${body.job_id}`, { key });
  expect((await job(ana)).body).toMatchObject({ id: body.job_id, state: 'queued' });
  expect((await job(eve)).status).toBe(404);
});

test('a key that is bound to a user may wait for the end of one', async () => {
  const { api } = await start();
  const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'write', userId: 'ana' });
  const { status, body } = await api.request('POST', '/memory/reflect?wait=60000', { body: {}, key: secret });
  expect([status, body]).toMatchObject([200, { state: 'done', reflections: [{ content: INSIGHT }] }]);
  expect((await api.request('GET', `/jobs/${body.job_id}`, { key: secret })).status).toBe(404);
});

test('one that nobody waits for is the same job until it is done', async () => {
  const { api } = await start({ workers: false });
  const first = await api.request('POST', '/memory/reflect', { body: { user_id: 'ana' } });
  expect(first).toMatchObject({ status: 202, body: { state: 'queued' } });
  expect((await api.request('POST', '/memory/reflect?wait=50', { body: { user_id: 'ana' } })).body).toEqual(first.body);
  const query = { query: 'rail', token: first.body.token };
  expect((await api.request('POST', '/memory/query', { body: query })).body['token_satisfied']).toBe(false);
});

test.each<[unknown, number, RegExp]>([
  [{ user_id: 'nobody' }, 404, /user_id: no memories of this user/],
  [{ user_id: 1 }, 400, /user_id: expected a string/],
  [{ session_id: '' }, 400, /session_id: must not be empty/],
  [{ users: ['ana'] }, 400, /unknown field "users"; allowed: user_id, session_id/],
  [[], 400, /expected a JSON object/],
])('%j is refused', async (body, status, detail) => {
  const { api } = await start({ workers: false });
  const reply = await api.request('POST', '/memory/reflect', { body });
  expect(reply).toMatchObject({ status, body: { detail: expect.stringMatching(detail) as string } });
});

test('without a language model it is refused, and with a reading key', async () => {
  await using api = await startApi({ folder: tempFolder(), settings: { OM_VEC_DIM: '256' } });
  await api.add({ content: 'Ana took the train' });
  expect(await api.request('POST', '/memory/reflect', { body: {} })).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining('OM_LLM_MODEL') as string },
  });
  expect((await api.request('POST', '/memory/reflect', { body: {}, key: null })).status).toBe(401);
});
