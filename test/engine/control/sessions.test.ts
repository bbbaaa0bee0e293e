import fs from 'node:fs';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { readConfig } from '../../../src/engine/config.ts';
import type { ControlDatabase } from '../../../src/engine/control/control-database.ts';
import type { Holder } from '../../../src/engine/types.ts';
import { openControlDatabase } from '../../../src/engine/control/open-control-database.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const HOUR_MS = 3_600_000;

afterEach(() => vi.useRealTimers());

/** Opens the control database of a folder, as another process would. */
function openAt(
  folder: string,
  { key = 'a-key-of-the-environment', now = () => Date.now(), settings = {} } = {},
): ControlDatabase {
  const config = readConfig({ OM_DB_PATH: `${folder}/cairn.sqlite`, OM_API_KEY: key, ...settings });
  const control = openControlDatabase(config, { now });
  onTestFinished(() => control.close());
  return control;
}

const ADMIN = (control: ControlDatabase) => control.authenticate('a-key-of-the-environment')!;

test('a session stands for its key in every process, and no file holds its secret', () => {
  const folder = tempFolder();
  const [one, other] = [openAt(folder), openAt(folder)];
  const { record, secret } = one.createKey({ tenantId: 'default', role: 'write', userId: 'ana' });
  const session = one.sessions.open(one.authenticate(secret)!);
  expect(other.sessions.find(session.secret)).toMatchObject({ keyId: record.id, role: 'write', userId: 'ana' });
  for (const name of fs.readdirSync(folder))
    expect(fs.readFileSync(`${folder}/${name}`).includes(session.secret)).toBe(false);
  other.sessions.close(session.secret);
  expect(one.sessions.find(session.secret)).toBeUndefined();
});

test('a session ends after its time, with its key, and with another OM_API_KEY', () => {
  const folder = tempFolder();
  let now = Date.now();
  const control = openAt(folder, { now: () => now });
  const { secret } = control.sessions.open(ADMIN(control));
  expect(control.sessions.find(secret)?.keyId).toBe('environment');
  expect(
    openAt(folder, { key: 'another-key-of-the-environment', now: () => now }).sessions.find(secret),
  ).toBeUndefined();
  const { record, secret: key } = control.createKey({ tenantId: 'default', role: 'read', expiresAt: now + HOUR_MS });
  const short = control.sessions.open(control.authenticate(key)!);
  expect(short.expiresAt).toBe(now + HOUR_MS);
  control.revokeKey(record.id);
  expect(control.sessions.find(short.secret)).toBeUndefined();
  now += 12 * HOUR_MS;
  expect(control.sessions.find(secret)).toBeUndefined();
});

const ISSUER = {
  OM_OIDC_ISSUER: 'https://login.example.org',
  OM_OIDC_AUDIENCE: 'https://memory.example.org',
  OM_OIDC_ROLE_CLAIM: 'roles',
  OM_OIDC_CLIENT_ID: 'console',
  OM_OIDC_CLIENT_SECRET: 'the-secret-of-the-client',
  OM_PUBLIC_URL: 'https://memory.example.org',
};
const holderOf = (keyId: string, tenantIds: readonly [string, ...string[]] = ['default']): Holder => ({
  ...{ role: 'admin', expiresAt: null, tenantId: tenantIds[0], tenantIds, keyId },
});

test.each([
  ['no issuer', {}],
  ['keys from another address', { ...ISSUER, OM_OIDC_JWKS_URL: 'https://other.example.org/keys' }],
  ['another issuer', { ...ISSUER, OM_OIDC_ISSUER: 'https://other.example.org' }],
  ['another audience', { ...ISSUER, OM_OIDC_AUDIENCE: 'https://other.example.org' }],
  ['another client', { ...ISSUER, OM_OIDC_CLIENT_ID: 'other' }],
  ['another secret of the client', { ...ISSUER, OM_OIDC_CLIENT_SECRET: 'another-secret-of-the-client' }],
  ['another claim with the role', { ...ISSUER, OM_OIDC_ROLE_CLAIM: 'groups' }],
])('a session that a token opened ends at a start with %s', (_what, settings) => {
  const folder = tempFolder();
  const { secret } = openAt(folder, { settings: ISSUER }).sessions.open(holderOf('oidc:0123456789abcdef'));
  expect(openAt(folder, { settings }).sessions.find(secret)).toBeUndefined();
  expect(openAt(folder, { settings: ISSUER }).sessions.find(secret)).toMatchObject({ role: 'admin' });
});

test('a key has a bounded number of sessions, and the oldest gives way', () => {
  let now = Date.now();
  const control = openAt(tempFolder(), { now: () => now });
  const secrets = Array.from({ length: 52 }, () => {
    now += 2_500;
    return control.sessions.open(ADMIN(control)).secret;
  });
  expect(secrets.filter((secret) => control.sessions.find(secret) !== undefined)).toEqual(secrets.slice(2));
});

test('a key opens a bounded number of sessions a minute, and others open theirs', () => {
  let now = Date.now();
  const control = openAt(tempFolder(), { now: () => now });
  const { secret } = control.createKey({ tenantId: 'default', role: 'read' });
  const holder = control.authenticate(secret)!;
  // Sessions that were closed count, too.
  for (let no = 0; no < 30; no++) control.sessions.close(control.sessions.open(holder).secret);
  now += 20_000;
  expect(() => control.sessions.open(holder)).toThrow(
    expect.objectContaining({ code: 'rate_limited', retryAfterMs: 40_000 }),
  );
  control.sessions.open(ADMIN(control));
  now += 40_000;
  control.sessions.open(holder);
});

test('nothing but a secret finds a session', () => {
  const control = openAt(tempFolder());
  const holder: Holder = ADMIN(control);
  const { secret } = control.sessions.open(holder);
  const unsigned = `${secret.slice(0, -4)}${secret.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`;
  for (const other of [unsigned, '', 'x', secret.slice(1), `${secret}x`, secret.toUpperCase(), '%00'])
    expect(control.sessions.find(other)).toBeUndefined();
});

test('the sessions of an erased tenant do not open a later tenant of the same name', () => {
  const control = openAt(tempFolder(), { settings: ISSUER });
  control.createTenant('acme');
  const signedIn = holderOf('oidc:rosa', ['acme', 'default']);
  const [ended, kept] = [control.sessions.open(signedIn), control.sessions.open(holderOf('oidc:nina'))];
  control.eraseTenant('acme');
  control.createTenant('acme');
  expect(control.sessions.find(ended.secret)).toBeUndefined();
  expect(control.sessions.find(kept.secret)).toMatchObject({ keyId: 'oidc:nina' });
});
