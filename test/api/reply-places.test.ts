import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { OwnedBytes } from '../../src/api/byte-share.ts';
import { growingPlace, ReplyPlaces, replyPlaces, takeReplyPlace } from '../../src/api/reply-places.ts';
import type { TenantCall } from '../../src/api/route.ts';
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

/** Makes a call of one key, with no server and a response that a test closes. */
function openCall() {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const close = () => void response.destroy();
  return { call: { principal: { keyId: 'one', tenantId: 'team' }, response } as unknown as TenantCall, close };
}

test('48 replies of one key that gather 2 MiB each have memory together or wait, and none is refused', async () => {
  const MIB = 1024 * 1024;
  const full = Promise.withResolvers<void>();
  const gather = async () => {
    const { call, close } = openCall();
    const { hold } = growingPlace(call);
    for (let part = 1; part <= 32; part++) await hold((part * 2 * MIB) / 32);
    await full.promise;
    close();
  };
  const gathered = Promise.all(Array.from({ length: 48 }, gather));
  await Promise.race([gathered, expect.poll(() => replyPlaces.bytes).toEqual({ held: 32 * MIB, waiting: 64 * MIB })]);
  full.resolve();
  await gathered;
  await expect.poll(() => replyPlaces.bytes).toEqual({ held: 0, waiting: 0 });
});

test('a reply whose client leaves waits no longer', async () => {
  const leave = replyPlaces.take({ keyId: 'one', tenantId: 'team' }, 32 * 1024 * 1024);
  const { call, close } = openCall();
  const waiting = takeReplyPlace(call, 1024 * 1024);
  await expect.poll(() => replyPlaces.bytes.waiting).toBeGreaterThan(0);
  close();
  await expect(waiting).rejects.toThrow('the client left');
  expect(replyPlaces.bytes.waiting).toBe(0);
  leave();
});

test('replies that are closed together have those that wait looked at once', async () => {
  const KIB = 1024;
  const owner = { keyId: 'one', tenantId: 'team' };
  const places = new ReplyPlaces();
  const held = Array.from({ length: 2_048 }, () => places.take(owner, 16 * KIB));
  const waiting = Array.from({ length: 4_095 }, () => places.enter(owner, 16 * KIB));
  const looks = vi.spyOn(OwnedBytes.prototype, 'of');
  onTestFinished(() => looks.mockRestore());
  for (const leave of held) leave();
  // It does not overtake those that wait.
  waiting.push(places.enter(owner, 16 * KIB));
  expect(places.bytes).toEqual({ held: 32 * KIB * KIB, waiting: 32 * KIB * KIB });
  const entered = await Promise.all(waiting.slice(0, 2_048));
  expect(looks.mock.calls.length).toBeLessThan(5_000);
  for (const leave of entered) leave();
  for (const leave of await Promise.all(waiting.slice(2_048))) leave();
  expect(places.bytes).toEqual({ held: 0, waiting: 0 });
});

test('the errors of replies that wait no longer have no stack trace, as thousands may be made in one turn', async () => {
  const places = new ReplyPlaces();
  const owner = { keyId: 'one', tenantId: 'team' };
  places.take(owner, 32 * 1024 * 1024);
  const { call, close } = openCall();
  const waits = [places.enter(owner, 1, { waitMs: 1 }), places.enter(owner, 1, { response: call.response })];
  close();
  const errors = (await Promise.allSettled(waits)).map((wait) => (wait as PromiseRejectedResult).reason as Error);
  for (const { stack } of errors) expect(stack).not.toContain('\n    at ');
});

test('the files of the page of the API are read once for all who ask', async () => {
  const [one, other] = await Promise.all(['start.js', 'start.js'].map(readViewerFile));
  expect(one!.bytes).toBe(other!.bytes);
  expect((await api.request('GET', '/docs/start.js', { key: null })).text).toBe(one!.bytes.toString());
});
