import { once } from 'node:events';
import http from 'node:http';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

/** The console's page and its sessions over HTTP; test/console drives the page in a browser. */

let api: TestApi;
const CONSOLE = { 'x-cairn-console': '1' };

beforeAll(async () => {
  api = await startApi({ folder: tempFolder() });
});
afterAll(() => api.stop());

/** Signs in. @returns the cookie, as a browser sends it back, and everything that the server said about it */
async function signIn(key: string): Promise<{ readonly cookie: string; readonly set: string }> {
  const reply = await api.request('POST', '/console/session', { body: { key }, key: null, headers: CONSOLE });
  expect(reply.status, reply.text).toBe(200);
  const set = reply.headers.get('set-cookie')!;
  return { cookie: set.split(';')[0]!, set };
}

function makeKey(role: 'read' | 'write' | 'add' | 'admin', tenantId = 'default') {
  return api.engine.control.createKey({ tenantId, role });
}

describe('the page', () => {
  test('comes with a policy that allows its own files alone, and with names that never change their content', async () => {
    const page = await api.request('GET', '/console', { key: null });
    expect(page.status).toBe(200);
    const policy = page.headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(page.headers.get('x-frame-options')).toBe('DENY');
    expect(page.headers.get('cache-control')).toBe('no-store');
    const names = [...page.text.matchAll(/(?:src|href)="\.(\/console\/[^"]+)"/g)].map(([, name]) => name!);
    expect(names.length).toBeGreaterThanOrEqual(3);
    for (const name of names) {
      const file = await api.request('GET', name, { key: null });
      expect(file.status, name).toBe(200);
      expect(file.headers.get('cache-control')).toContain('immutable');
      expect(file.headers.get('content-encoding')).toBe('gzip');
      const plain = await api.request('GET', name, { key: null, headers: { 'accept-encoding': 'gzip;q=0' } });
      expect(plain.headers.get('content-encoding')).toBeNull();
    }
  });

  test('has no file but its own', async () => {
    for (const name of ['package.json', '..%2findex.html', '%2e%2e', '.env', 'index.html'])
      expect((await api.request('GET', `/console/${name}`, { key: null })).status, name).toBe(404);
  });
});

describe('a session', () => {
  test('is opened by a key some times a minute, as each one is written to the disk', async () => {
    const [busy, other] = [makeKey('read'), makeKey('read')];
    for (let at = 0; at < 30; at++) await signIn(busy.secret);
    const body = { key: busy.secret };
    const refused = await api.request('POST', '/console/session', { body, key: null, headers: CONSOLE });
    expect([refused.status, refused.body.code]).toEqual([429, 'rate_limited']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    await signIn(other.secret);
  });

  test('is a cookie that no script reads and no other site uses', async () => {
    const { set } = await signIn(ADMIN_KEY);
    expect(set).toMatch(/^cairn_session_\d+=[\w-]{64}; Path=\/; HttpOnly; SameSite=Strict; Expires=/);
    expect(set).not.toContain('Secure');
    const overTls = await api.request('POST', '/console/session', {
      body: { key: ADMIN_KEY },
      key: null,
      headers: { ...CONSOLE, origin: 'https://cairn.example', host: 'cairn.example' },
    });
    // Node's fetch sets the Host itself, so that the origin is a foreign one here.
    expect(overTls.status).toBe(403);
  });

  test('reads and writes as its key does, and writes only with the header of the console', async () => {
    const { record, secret } = makeKey('write');
    const { cookie } = await signIn(secret);
    const body = { content: 'Sessions end after twelve hours.' };
    const without = await api.request('POST', '/memory/add', { body, key: null, headers: { cookie } });
    expect(without.status).toBe(403);
    expect(without.body.detail).toContain('x-cairn-console');
    const added = await api.request('POST', '/memory/add', { body, key: null, headers: { cookie, ...CONSOLE } });
    expect(added.status).toBe(202);
    const memory = await api.request('GET', `/memory/${added.body.id}`, { key: null, headers: { cookie } });
    expect(memory.body['written_by']).toBe(record.id);
    const refused = await api.request('GET', '/admin/keys', { key: null, headers: { cookie } });
    expect(refused.status).toBe(403);
  });

  test('is worth nothing to the page of another origin, allowed by CORS or not', async () => {
    const open = await startApi({
      folder: tempFolder(),
      settings: { OM_CORS_ORIGINS: 'http://friend.example' },
    });
    const opened = await open.request('POST', '/console/session', {
      body: { key: ADMIN_KEY },
      key: null,
      headers: CONSOLE,
    });
    const cookie = opened.headers.get('set-cookie')!.split(';')[0]!;
    const foreign = [
      { origin: 'http://friend.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ];
    for (const headers of foreign) {
      const reply = await open.request('GET', '/memory/all', {
        key: null,
        headers: { cookie, ...CONSOLE, ...headers },
      });
      expect(reply.status, JSON.stringify(headers)).toBe(401);
      expect(reply.headers.get('access-control-allow-credentials')).toBeNull();
    }
    const preflight = await fetch(`${open.url}/memory/all`, {
      method: 'OPTIONS',
      headers: {
        origin: 'http://friend.example',
        'access-control-request-method': 'DELETE',
        'access-control-request-headers': 'x-cairn-console',
      },
    });
    expect(preflight.headers.get('access-control-allow-headers')).not.toContain('x-cairn-console');
    await open.stop();
  });

  test('is not opened by a form of another site', async () => {
    const body = { key: ADMIN_KEY };
    expect((await api.request('POST', '/console/session', { body, key: null })).status).toBe(403);
    const headers = { ...CONSOLE, 'sec-fetch-site': 'cross-site' };
    expect((await api.request('POST', '/console/session', { body, key: null, headers })).status).toBe(403);
  });

  test('ends with its key', async () => {
    const { record, secret } = makeKey('read');
    const { cookie } = await signIn(secret);
    const look = () => api.request('GET', '/memory/all', { key: null, headers: { cookie } });
    expect((await look()).status).toBe(200);
    api.engine.control.revokeKey(record.id);
    expect((await look()).status).toBe(401);
  });

  test('ends when its owner signs out', async () => {
    const { cookie } = await signIn(ADMIN_KEY);
    const headers = { cookie, ...CONSOLE };
    const left = await api.request('DELETE', '/console/session', { key: null, headers });
    expect(left.body['caller']).toBeNull();
    expect(left.headers.get('set-cookie')).toContain('Expires=Thu, 01 Jan 1970');
    expect((await api.request('GET', '/memory/all', { key: null, headers })).status).toBe(401);
  });

  test('ends the uploads of lines that began with it', async () => {
    const { cookie } = await signIn(makeKey('write').secret);
    const headers = { cookie, ...CONSOLE, 'content-type': 'application/x-ndjson', accept: 'application/x-ndjson' };
    const { hostname, port } = new URL(api.url);
    const request = http.request({ hostname, port, method: 'POST', path: '/memory/add/batch', headers });
    request.on('error', () => {});
    request.write('{"content":"while signed in","user_id":"lines"}\n');
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const lines = createInterface({ input: response })[Symbol.asyncIterator]();
    expect(JSON.parse((await lines.next()).value as string)).toMatchObject({ line: 1, state: 'queued' });
    await api.request('DELETE', '/console/session', { key: null, headers: { cookie, ...CONSOLE } });
    const sending = setInterval(() => request.write(`{"content":"${Math.random()} after","user_id":"lines"}\n`), 50);
    let last = '';
    for await (const line of { [Symbol.asyncIterator]: () => lines }) last = line;
    clearInterval(sending);
    expect(JSON.parse(last)).toMatchObject({ error: { code: 'unauthenticated' } });
    request.destroy();
  });

  test('takes its open event streams with it', async () => {
    const { cookie } = await signIn(makeKey('read').secret);
    const headers = { cookie, accept: 'text/event-stream' };
    const stream = await fetch(`${api.url}/events?cursor=latest`, { headers, signal: AbortSignal.timeout(120_000) });
    expect(stream.status).toBe(200);
    await api.request('DELETE', '/console/session', { key: null, headers: { cookie, ...CONSOLE } });
    expect(await stream.text()).toContain('event: gone\ndata: {"reason":"unauthenticated"}');
  });

  test('says who the caller is', async () => {
    const { record, secret } = api.engine.control.createKey({ tenantId: 'default', role: 'write', userId: 'ana' });
    const { cookie } = await signIn(secret);
    const { body } = await api.request('GET', '/console/session', { key: null, headers: { cookie } });
    expect(body).toMatchObject({
      is_open: false,
      has_session: true,
      caller: { key_id: record.id, role: 'write', tenant: 'default', user_id: 'ana', tags: [] },
    });
    expect((await api.request('GET', '/console/session', { key: null })).body['caller']).toBeNull();
  });

  fileTest('opens the queue board as well', async () => {
    const { cookie } = await signIn(ADMIN_KEY);
    // Without a Redis there are no queues, which only an admitted caller is told.
    expect((await api.request('GET', '/admin/queues', { key: null, headers: { cookie } })).status).toBe(404);
    expect((await api.request('GET', '/admin/queues', { key: null })).status).toBe(401);
    const reader = await signIn(makeKey('read').secret);
    expect((await api.request('GET', '/admin/queues', { key: null, headers: reader })).status).toBe(403);
    expect((await api.request('GET', '/metrics', { key: null, headers: { cookie } })).status).toBe(200);
  });
});

describe('a key that opens no session', () => {
  test.each([
    ['cairn_0123456789abcdef_short', 400, 'incomplete'],
    ['0123456789abcdef', 400, 'id of a key'],
    ['two words', 400, 'blank'],
    ['wrong', 401, 'not known'],
  ])('%s is refused with its reason', async (key, status, reason) => {
    const reply = await api.request('POST', '/console/session', { body: { key }, key: null, headers: CONSOLE });
    expect(reply.status).toBe(status);
    expect(reply.body.detail).toContain(reason);
    expect(reply.headers.get('set-cookie')).toBeNull();
  });

  test.each([
    ['9f4be1d07c2a8365', '9f4be1d07c2a8366'],
    ['cairn_Xq7mV2pLw9Zt4Rb8', 'cairn_Xq7mV2pLw9Zt4Rb9'],
    ['correct horse battery staple', 'correct horse battery stable'],
  ])('is not OM_API_KEY of the form %s', async (own, other) => {
    await using served = await startApi({ folder: tempFolder(), settings: { OM_API_KEY: own }, threads: false });
    const send = (key: string) =>
      served.request('POST', '/console/session', { body: { key }, key: null, headers: CONSOLE });
    expect((await send(own)).status).toBe(200);
    // Guesses at it count as wrong keys.
    expect((await send(other)).body.detail).toContain('not known');
  });

  test('one that only adds is told which roles read', async () => {
    const body = { key: makeKey('add').secret };
    const reply = await api.request('POST', '/console/session', { body, key: null, headers: CONSOLE });
    expect(reply.status).toBe(403);
    expect(reply.body.detail).toContain('yours has add');
  });
});

test('without any key nobody signs in', async () => {
  const open = await startApi({ folder: tempFolder(), settings: { OM_API_KEY: '' } });
  const { body } = await open.request('GET', '/console/session', { key: null });
  expect(body).toMatchObject({ is_open: true, has_session: false, caller: { role: 'admin' } });
  await open.stop();
});
