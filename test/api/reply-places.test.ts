import { afterAll, beforeAll, expect, test } from 'vitest';
import { replyPlaces } from '../../src/api/reply-places.ts';
import { readViewerFile } from '../../src/api/viewer/viewer.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none', OM_MODE: 'langgraph' } });
  await api.add({ content: 'The harbour opens at noon.', user_id: 'ana' });
});
afterAll(() => api.stop());

test.each([
  ['GET', '/users/ana/summary', undefined],
  ['POST', '/users/ana/summary/regenerate', undefined],
  ['POST', '/lgm/retrieve', { node: 'observe' }],
  ['POST', '/lgm/context', {}],
] as const)('%s %s takes its share of the memory of large replies, and gives it back', async (method, path, body) => {
  const ask = (key: string) => api.request(method, path, { key, ...(body && { body }) });
  const holder = api.engine.control.authenticate(ADMIN_KEY)!;
  const leave = await replyPlaces.enter(holder, 32 * 1024 * 1024);
  const others = api.engine.control.createKey({ tenantId: 'default', role: 'read' }).secret;
  expect((await ask(others)).status).toBe(200);
  const waiting = ask(ADMIN_KEY);
  await expect.poll(() => replyPlaces.bytes.waiting).toBeGreaterThan(0);
  leave();
  expect((await waiting).status).toBe(200);
  await expect.poll(() => replyPlaces.bytes).toEqual({ held: 0, waiting: 0 });
});

test('a key of several tenants has one share of the memory of large replies in all of them', async () => {
  const { control } = api.engine;
  control.createTenant('team');
  const { secret, record } = control.createKey({ tenantId: 'default', furtherTenantIds: ['team'], role: 'read' });
  const leave = await replyPlaces.enter({ keyId: record.id, tenantId: 'default' }, 32 * 1024 * 1024);
  const waiting = api.request('GET', '/users/ana/summary', { key: secret, headers: { 'x-cairn-tenant': 'team' } });
  await expect.poll(() => replyPlaces.bytes.waiting).toBeGreaterThan(0);
  leave();
  await waiting;
  await expect.poll(() => replyPlaces.bytes).toEqual({ held: 0, waiting: 0 });
});

test('the files of the page of the API are read once for all who ask', async () => {
  const [one, other] = await Promise.all(['start.js', 'start.js'].map(readViewerFile));
  expect(one!.bytes).toBe(other!.bytes);
  expect((await api.request('GET', '/docs/start.js', { key: null })).text).toBe(one!.bytes.toString());
});
