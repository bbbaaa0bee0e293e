/** No sign-in is without its record in the audit log of the service. */
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect } from 'vitest';
import { AUDIENCE, type IdentityProvider, makeKey, startIdentityProvider } from '../support/identity-provider.ts';
import type { SigningKey } from '../support/identity-provider.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { fileTest } from '../support/store-settings.ts';

let provider: IdentityProvider;
let signing: SigningKey;
let api: TestApi;

beforeAll(async () => {
  signing = await makeKey('ES256');
  provider = await startIdentityProvider([signing]);
  const settings = { OM_OIDC_ISSUER: provider.issuer, OM_OIDC_AUDIENCE: AUDIENCE, OM_OIDC_ROLE_CLAIM: 'roles' };
  api = await startApi({ folder: tempFolder(), settings });
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

/** Runs work while the audit log of the service takes no record. */
async function withoutAudit<Result>(work: () => Promise<Result>): Promise<Result> {
  const db = new Database(api.engine.config.paths.control);
  try {
    db.exec("CREATE TRIGGER refuse BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'refused by a test'); END");
    return await work();
  } finally {
    db.exec('DROP TRIGGER refuse');
    db.close();
  }
}

const recorded = async (action: string) =>
  (await api.engine.control.audit.list({ limit: 100 })).filter((record) => record.action === action);
const statusOf = async (key: string) => (await api.request('GET', '/memory/all', { key })).status;

fileTest('a token passes once its sign-in is recorded, whatever became of an earlier attempt', async () => {
  const token = await provider.sign(signing, { sub: 'ana', roles: 'read' });
  const refused = await withoutAudit(() => Promise.all([statusOf(token), statusOf(token), statusOf(token)]));
  expect(refused).toEqual([500, 500, 500]);
  expect(await withoutAudit(() => statusOf(token))).toBe(500);
  expect(await recorded('token.sign_in')).toEqual([]);
  for (let at = 0; at < 3; at += 1) expect(await statusOf(token)).toBe(200);
  expect(await recorded('token.sign_in')).toHaveLength(1);
});

fileTest('no session of the console is opened without its record', async () => {
  const { secret } = api.engine.control.createKey({ tenantId: 'default', role: 'read' } as never);
  const signIn = () =>
    api.request('POST', '/console/session', {
      key: null,
      headers: { 'x-cairn-console': '1' },
      body: { key: secret },
    });
  const db = new Database(api.engine.config.paths.control, { readonly: true });
  const sessions = () => db.prepare('SELECT count(*) FROM sessions').pluck().get();
  const refused = await withoutAudit(signIn);
  expect(refused.status).toBe(500);
  expect(refused.headers.get('set-cookie')).toBeNull();
  expect(sessions()).toBe(0);
  expect((await signIn()).status).toBe(200);
  expect(sessions()).toBe(1);
  expect((await recorded('console.sign_in')).map(({ detail }) => detail)).toEqual([{ role: 'read' }]);
  db.close();
});

fileTest('a token of the same owner with another role is recorded by itself', async () => {
  for (const roles of ['read', 'admin', 'admin', 'read'])
    expect(await statusOf(await provider.sign(signing, { sub: 'eve', roles }))).toBe(200);
  const roles = (await recorded('token.sign_in')).map(({ detail }) => detail['role']);
  expect(roles.slice(0, 2).sort()).toEqual(['admin', 'read']);
  expect(roles).toHaveLength(3);
});
