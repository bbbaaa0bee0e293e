import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApi, type Reply, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
let alice: string;
let bob: string;
let hers: { id: string; job_id: string; token: string };

beforeAll(async () => {
  api = await startApi({ folder: tempFolder() });
  const tenant = (id: string) => {
    api.engine.control.createTenant(id);
    return api.engine.control.createKey({ tenantId: id, role: 'admin' }).secret;
  };
  [alice, bob] = [tenant('alice'), tenant('bob')];
  const item = { content: 'The vault key is under the fern.', user_id: 'u', external_id: 'e', tags: ['secret'] };
  hers = (
    await api.request('POST', '/memory/add', { body: item, key: alice, headers: { 'idempotency-key': 'shared' } })
  ).body;
  await api.add({ content: 'Bob likes ferns.', user_id: 'u' }, bob);
});
afterAll(() => api.stop());

/** Everything a caller can see of a reply, with the asked id made the same. */
function visible(reply: Reply, id: string): object {
  const headers = Object.fromEntries([...reply.headers].filter(([name]) => !['date', 'x-request-id'].includes(name)));
  const body = { ...(reply.body as object), request_id: '' };
  return JSON.parse(JSON.stringify({ status: reply.status, headers, body }).replaceAll(id, 'ID')) as object;
}

describe('a foreign id answers exactly as an absent one', () => {
  test.each([
    ['GET', '/memory/:m', undefined],
    ['GET', '/memory/:m/history', undefined],
    ['GET', '/memory/:m/links', undefined],
    ['PATCH', '/memory/:m', { content: 'mine now' }],
    ['DELETE', '/memory/:m', undefined],
    ['POST', '/memory/reinforce', { id: ':m' }],
    ['GET', '/jobs/:j', undefined],
    ['GET', '/jobs/:j/events', undefined],
    ['POST', '/jobs/:j/retry', undefined],
    ['POST', '/jobs/:j/cancel', undefined],
    ['DELETE', '/jobs/:j', undefined],
  ])('%s %s', async (method, path, body) => {
    const send = (memory: string, job: string) => {
      const fill = (text: string) => text.replace(':m', memory).replace(':j', job);
      return api.request(method, fill(path), {
        key: bob,
        ...(body === undefined ? {} : { body: fill(JSON.stringify(body)) }),
      });
    };
    // As long as a real id, so that not even the length of a reply differs.
    const absent = hers.id.replaceAll(/[0-9a-f]/g, '0');
    const [foreign, none] = [await send(hers.id, hers.job_id), await send(absent, absent)];
    expect(foreign.status).toBe(404);
    const id = path.includes(':j') ? hers.job_id : hers.id;
    expect(visible(foreign, id)).toEqual(visible(none, absent));
    expect((await api.request('GET', `/memory/${hers.id}`, { key: alice })).body).toMatchObject({ version: 1 });
  });
});

test('a query, a list, a count and a metric show nothing of the other', async () => {
  const query = { query: 'vault key fern', k: 200, filters: { users: ['u'] }, min_score: 0 };
  const found = await api.request('POST', '/memory/query', { body: query, key: bob });
  expect(found.body.matches.map(({ content }) => content)).toEqual(['Bob likes ferns.']);
  expect((await api.request('GET', '/memory/all', { key: bob })).body.items).toHaveLength(1);
  expect((await api.request('GET', '/users/u/memories', { key: bob })).body.items).toHaveLength(1);
  expect((await api.request('GET', '/jobs', { key: bob })).body.total).toBe(1);
  expect((await api.request('GET', '/memory/all')).body.items).toEqual([]);
  expect((await api.request('GET', '/metrics', { key: bob })).status).toBe(403);
  expect((await api.request('GET', '/metrics')).text).not.toMatch(/alice|bob/);
});

test('a foreign token is as good as a forged one', async () => {
  const ask = async (token: string) =>
    visible(await api.request('POST', '/memory/query', { body: { query: 'x', token }, key: bob }), token);
  expect(await ask(hers.token)).toEqual(await ask(hers.token.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))));
  expect(await ask(hers.token)).toMatchObject({ status: 400 });
});

test('equal words, external ids and Idempotency-Keys do not meet', async () => {
  const item = { content: 'The vault key is under the fern.', user_id: 'u', external_id: 'e', tags: ['secret'] };
  const reply = await api.request('POST', '/memory/add', {
    body: item,
    key: bob,
    headers: { 'idempotency-key': 'shared' },
  });
  expect(reply.status).toBe(202);
  expect(reply.headers.get('idempotent-replayed')).toBeNull();
  expect(reply.body.id).not.toBe(hers.id);
  const other = await api.request('POST', '/memory/add', {
    body: { content: 'else' },
    headers: { 'idempotency-key': 'shared' },
  });
  expect(other.status).toBe(202);
});

test('a delete by filter stays at home', async () => {
  const deleted = await api.request('DELETE', '/memory?user_id=u', { key: bob });
  expect(deleted.body.deleted).toBeGreaterThan(0);
  expect((await api.request('GET', `/memory/${hers.id}`, { key: alice })).status).toBe(200);
});

test.each(['x-tenant', 'x-tenant-id', 'x-project-id', 'x-user-id'])('no header names a tenant: %s', async (header) => {
  const reply = await api.request('GET', `/memory/${hers.id}`, { key: bob, headers: { [header]: 'alice' } });
  expect(reply.status).toBe(404);
});
