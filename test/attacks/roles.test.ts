import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/api/routes.ts';
import { sendRaw } from '../support/attacks/raw-request.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { expectWell } from './attack.ts';

/** An id of the right form that nothing has. */
const ABSENT = '01a1fe30-e25b-7576-a0c2-3c4e3646bd72';
/** What each role may call; routes for metrics ask for an admin of the default tenant. */
const MAY = {
  read: ['read', 'read or add'],
  add: ['add', 'read or add'],
  write: ['read', 'add', 'read or add', 'write'],
  admin: ['read', 'add', 'read or add', 'write', 'admin', 'metrics'],
} as const satisfies Readonly<Record<string, readonly string[]>>;
type Role = keyof typeof MAY;

let api: TestApi;
const keys = new Map<string, string>();

beforeAll(async () => {
  api = await startApi({ folder: tempFolder() });
  api.engine.control.createTenant('acme');
  for (const tenantId of ['default', 'acme'])
    for (const role of Object.keys(MAY) as Role[])
      keys.set(`${tenantId} ${role}`, api.engine.control.createKey({ tenantId, role }).secret);
});
afterAll(() => api.stop());

const guarded = ROUTES.filter(({ access }) => access !== 'anyone');
const pathOf = (path: string) => path.replaceAll(/:\w+/g, ABSENT);

describe('every route', () => {
  test.each([
    ['without a key', null],
    ['with a key that nobody has', 'cairn_0123456789abcdef_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'],
    ['with an empty key', ''],
    ['with the beginning of a key', ADMIN_KEY.slice(0, -1)],
    ['with a key and more', `${ADMIN_KEY}x`],
  ])('refuses a request %s', async (_name, key) => {
    const answers = await Promise.all(
      guarded.map(async ({ method, path }) => {
        const { status } = await api.request(method.toUpperCase(), pathOf(path), { key });
        return `${method} ${path} ${status}`;
      }),
    );
    expect(answers).toEqual(guarded.map(({ method, path }) => `${method} ${path} 401`));
  });

  test.each(['default', 'acme'])('of the tenant %s admits the roles that it names, and no others', async (tenant) => {
    for (const role of Object.keys(MAY) as Role[]) {
      const wrong: string[] = [];
      for (const { method, path, access } of guarded) {
        const target = pathOf(path) + (path.endsWith('/events') ? '?wait=0' : '');
        const reply = await api.request(method.toUpperCase(), target, { key: keys.get(`${tenant} ${role}`)! });
        const may = (MAY[role] as readonly string[]).includes(access) && (tenant === 'default' || access !== 'metrics');
        if (!may && reply.status !== 403) wrong.push(`${method} ${path}: ${reply.status}`);
        if (may && [401, 500].includes(reply.status)) wrong.push(`${method} ${path}: ${reply.status}`);
        if (may && tenant === 'default' && reply.status === 403) wrong.push(`${method} ${path}: 403`);
      }
      expect(wrong, role).toEqual([]);
    }
  });

  test.each(['HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'PATCH', 'PUT', 'DELETE', 'POST'])(
    'tells nothing to a method that it does not have: %s',
    async (method) => {
      const own = new Set(ROUTES.filter((route) => route.method.toUpperCase() === method).map(({ path }) => path));
      for (const { path } of guarded.filter((route) => !own.has(route.path))) {
        const { status, text } = await sendRaw(api.port, {
          method,
          path: pathOf(path),
          headers: ['host', '127.0.0.1'],
        });
        expect([401, 404, 405], `${method} ${path}: ${text}`).toContain(status);
      }
    },
  );

  test('is served under its own spelling only', async () => {
    for (const { method, path } of guarded) {
      for (const spelling of [`${pathOf(path)}/`, `/${pathOf(path)}`, pathOf(path).toUpperCase()]) {
        const { status } = await sendRaw(api.port, {
          method: method.toUpperCase(),
          path: spelling,
          headers: ['host', '127.0.0.1', 'authorization', `Bearer ${ADMIN_KEY}`],
        });
        expect([404, 405], `${method} ${spelling}`).toContain(status);
      }
    }
  });
});

test('keys in odd places and forms are no keys', async () => {
  const bearer = `Bearer ${ADMIN_KEY}`;
  const headers: readonly (readonly string[])[] = [
    ['authorization', ADMIN_KEY],
    ['authorization', `Basic ${Buffer.from(`x:${ADMIN_KEY}`).toString('base64')}`],
    ['authorization', 'Bearer'],
    ['authorization', `Bearer ${'a'.repeat(12_000)}`],
    ['authorization', `Bearer ${ADMIN_KEY} ${ADMIN_KEY}`],
    ['authorization', bearer.replace('-', '\u00ad-').normalize()].map((text) => Buffer.from(text).toString('latin1')),
    ['x-api-key', ''],
    ['x-api-key', `${ADMIN_KEY},${ADMIN_KEY}`],
    ['cookie', `key=${ADMIN_KEY}`],
    ['__proto__', bearer],
    ['constructor', bearer],
    ['x-forwarded-authorization', bearer],
    ['proxy-authorization', bearer],
  ];
  for (const header of headers) {
    const reply = await sendRaw(api.port, {
      method: 'GET',
      path: '/memory/all',
      headers: ['host', '127.0.0.1', ...header],
    });
    expect([400, 401, 431], header[0]).toContain(reply.status);
  }
  for (const path of [`/memory/all?key=${ADMIN_KEY}`, `/memory/all?api_key=${ADMIN_KEY}`]) {
    const { status, text } = await sendRaw(api.port, { method: 'GET', path, headers: ['host', '127.0.0.1'] });
    expect([400, 401]).toContain(status);
    expect(text).not.toContain(ADMIN_KEY);
  }
  await expectWell(api);
});
