import { createPublicKey } from 'node:crypto';
import { type JWK, SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/engine/ports.ts';
import { createManualClock } from '../support/engine-fixture.ts';
import {
  AUDIENCE,
  type Claims,
  type IdentityProvider,
  makeKey,
  startIdentityProvider,
} from '../support/identity-provider.ts';
import type { SigningKey } from '../support/identity-provider.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const keys = new Map<string, SigningKey>();
const keyOf = (alg: string) => keys.get(alg)!;

let provider: IdentityProvider;
let api: TestApi;
const logged: string[] = [];
const log = (fields: object, event: string) => void logged.push(JSON.stringify([event, fields]));
const logger = { debug: log, info: log, warn: log, error: log };

/** What was logged when the provider was last asked in vain. */
const lastProblem = () => logged.findLast((line) => line.includes('identity_provider_unavailable'));

/** Starts an API that accepts the provider's tokens, without threads: tokens are checked on this thread in any case. */
const startWith = (
  settings: Readonly<Record<string, string>> = {},
  issuer = provider.issuer,
  clock: Clock = systemClock,
) =>
  startApi({
    folder: tempFolder(),
    logger,
    clock,
    settings: { OM_OIDC_ISSUER: issuer, OM_OIDC_AUDIENCE: AUDIENCE, ...settings },
  });
const READ = '/memory/all';
const statusOf = async (token: string, at: TestApi = api, path = READ) =>
  (await at.request('GET', path, { key: token })).status;
const sign = (claims: Claims = {}, alg = 'ES256') => provider.sign(keyOf(alg), claims);
const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;

const monotonicMs = performance.now.bind(performance);
/** Moves the monotonic clock on from where it really is, by which the provider's keys grow old. */
function pass(ms: number): void {
  vi.spyOn(performance, 'now').mockImplementation(() => monotonicMs() + ms);
}

beforeAll(async () => {
  for (const alg of ALGORITHMS) keys.set(alg, await makeKey(alg));
  provider = await startIdentityProvider([...keys.values()]);
  api = await startWith();
});
afterEach(() => void vi.restoreAllMocks());
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

describe('a token of the issuer', () => {
  test.each(ALGORITHMS)('signed with %s is accepted, in either header, and reads', async (alg) => {
    const token = await sign({}, alg);
    expect(await statusOf(token)).toBe(200);
    const other = await api.request('GET', READ, { key: null, headers: { 'x-api-key': token } });
    expect(other.status).toBe(200);
    expect((await api.request('POST', '/memory/add', { key: token, body: { content: 'x' } })).status).toBe(403);
  });

  test('is accepted for one audience of several, and within a minute of its times', async () => {
    expect(await statusOf(await sign({ aud: ['another', AUDIENCE] }))).toBe(200);
    expect(await statusOf(await sign({ exp: inSeconds(-30), nbf: inSeconds(30) }))).toBe(200);
  });

  const refused: readonly (readonly [string, () => Claims, RegExp])[] = [
    ['has expired', () => ({ exp: inSeconds(-90) }), /has expired/],
    ['is not valid yet', () => ({ nbf: inSeconds(90) }), /not valid yet/],
    ['never ends', () => ({ exp: undefined }), /lacks one of/],
    ['is of another issuer', () => ({ iss: `${provider.issuer}/` }), /another issuer/],
    ['is for another audience', () => ({ aud: 'another' }), /another audience/],
    ['is for nobody', () => ({ aud: undefined }), /another audience/],
    ['has no subject', () => ({ sub: undefined }), /lacks one of/],
    ['has an empty subject', () => ({ sub: '' }), /lacks one of/],
    ['has a number as its subject', () => ({ sub: 7 }), /lacks one of/],
    ['has a text as its end', () => ({ exp: 'tomorrow' }), /lacks one of/],
  ];
  test.each(refused)('that %s is a 401', async (_what, claims, says) => {
    const { status, body } = await api.request('GET', READ, { key: await sign(claims()) });
    expect(status).toBe(401);
    expect(body.detail).toMatch(says);
  });

  test('is refused by routes for larger roles, and keys go on beside it', async () => {
    expect(await statusOf(await sign(), api, '/jobs')).toBe(await statusOf(ADMIN_KEY, api, '/jobs'));
    expect(await statusOf(await sign(), api, '/admin/reembed')).toBe(403);
    expect(await statusOf(ADMIN_KEY)).toBe(200);
    expect((await api.request('GET', READ, { key: null })).status).toBe(401);
  });
});

describe('what the issuer did not sign', () => {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = () => ({ iss: provider.issuer, aud: AUDIENCE, sub: 'canary-subject', exp: inSeconds(300) });

  test('is a 401: alg none, with an empty part or without any', async () => {
    for (const alg of ['none', 'None', 'NONE'])
      expect(await statusOf(`${encode({ alg, typ: 'JWT' })}.${encode(claims())}.`)).toBe(401);
    const [header, body] = (await sign()).split('.');
    expect(await statusOf(`${header}.${body}.`)).toBe(401);
    expect(await statusOf(`${header}.${body}`)).toBe(401);
  });

  test('is a 401: HS256 with the public key as the secret', async () => {
    const { publicJwk, kid } = keyOf('RS256');
    const pem = createPublicKey({ key: publicJwk, format: 'jwk' }).export({
      type: 'spki',
      format: 'pem',
    });
    for (const secret of [pem, JSON.stringify(publicJwk), publicJwk.n!]) {
      const token = new SignJWT(claims()).setProtectedHeader({ alg: 'HS256', kid });
      expect(await statusOf(await token.sign(Buffer.from(secret)))).toBe(401);
    }
  });

  test('is a 401: a changed claim, another signature, or a key of its own', async () => {
    const [header, , signature] = (await sign()).split('.');
    expect(await statusOf(`${header}.${encode({ ...claims(), sub: 'someone' })}.${signature}`)).toBe(401);
    const foreign = await makeKey('ES256');
    expect(await statusOf(await provider.sign(foreign))).toBe(401);
    const { publicJwk } = foreign;
    expect(await statusOf(await provider.sign(foreign, {}, { jwk: publicJwk, kid: undefined }))).toBe(401);
    expect(await statusOf(await provider.sign(foreign, {}, { jku: 'http://127.0.0.1:1/keys' }))).toBe(401);
  });

  test('is a 401: what only looks like a token', async () => {
    for (const text of ['eyJ..', 'eyJ.eyJ.eyJ', 'eyJhbGciOiJFUzI1NiJ9.e30.e30', `eyJ${'A'.repeat(8000)}.e30.e30`])
      expect(await statusOf(text)).toBe(401);
  });

  test('counts as a wrong key, but not what the issuer signed or an unknown key', async () => {
    // By a clock that stands, as the first pause lasts no longer than a second.
    const standing = createManualClock(Date.now());
    await using guarded = await startWith({ OM_MAX_WRONG_KEYS: '3' }, provider.issuer, standing);
    const expired = await sign({ exp: inSeconds(-90) });
    const unknown = await provider.sign(await makeKey('ES256', 'unknown'));
    for (let time = 0; time < 6; time++) {
      expect(await statusOf(expired, guarded)).toBe(401);
      expect(await statusOf(unknown, guarded)).toBe(401);
    }
    const forged = `${(await sign()).split('.').slice(0, 2).join('.')}.AAAA`;
    const statuses: number[] = [];
    for (let time = 0; time < 6; time++) statuses.push(await statusOf(forged, guarded));
    expect(statuses).toEqual([401, 401, 401, 401, 429, 429]);
    expect(await statusOf(await sign(), guarded)).toBe(200);
  });
});

describe('the keys of the provider', () => {
  test('are asked for again for an unknown key, and once in a while only', async () => {
    const next = await makeKey('ES256', 'next');
    const token = await provider.sign(next);
    expect(await statusOf(token)).toBe(401);
    pass(31_000);
    provider.published.push(next.publicJwk);
    const before = provider.asked();
    expect(await statusOf(token)).toBe(200);
    const unknown = await provider.sign(await makeKey('ES256', 'never-published'));
    const statuses = await Promise.all(Array.from({ length: 20 }, () => statusOf(unknown)));
    expect(new Set(statuses)).toEqual(new Set([401]));
    expect(provider.asked()).toBe(before + 1);
  });

  test('that are withdrawn are refused after an hour, and known ones go on while the provider is down', async () => {
    const gone = await makeKey('EdDSA', 'gone');
    await using own = await startIdentityProvider([keyOf('ES256'), gone]);
    await using served = await startWith({}, own.issuer);
    const [kept, withdrawn] = [await own.sign(keyOf('ES256')), await own.sign(gone)];
    expect([await statusOf(kept, served), await statusOf(withdrawn, served)]).toEqual([200, 200]);
    own.published.pop();
    await own.stop();
    pass(2 * 3_600_000);
    expect([await statusOf(kept, served), await statusOf(withdrawn, served)]).toEqual([200, 200]);
    await own.start();
    pass(4 * 3_600_000);
    expect([await statusOf(kept, served), await statusOf(withdrawn, served)]).toEqual([200, 401]);
  });

  test('may be missing at the start: tokens are a 503 until the provider answers, and keys go on', async () => {
    await using own = await startIdentityProvider([keyOf('ES256')]);
    await own.stop();
    await using served = await startWith({}, own.issuer);
    const token = await own.sign(keyOf('ES256'));
    const { status, headers } = await served.request('GET', READ, { key: token });
    expect([status, headers.get('retry-after')]).toEqual([503, '1']);
    expect(await statusOf(ADMIN_KEY, served)).toBe(200);
    await own.start();
    pass(1_100);
    expect(await statusOf(token, served)).toBe(200);
  });

  const wrongAnswers: readonly (readonly [string, string])[] = [
    ['another issuer', JSON.stringify({ issuer: 'https://evil.example', jwks_uri: 'https://evil.example/keys' })],
    ['no JSON', '<html>'],
    ['null', 'null'],
    ['no object', '[]'],
  ];
  test.each(wrongAnswers)('are not taken from a configuration with %s', async (_what, text) => {
    await using own = await startIdentityProvider([keyOf('ES256')]);
    own.answerBy((_request, response) => response.end(text));
    await using served = await startWith({}, own.issuer);
    expect(await statusOf(await own.sign(keyOf('ES256')), served)).toBe(503);
  });

  test('are not read beyond 256 KB, not followed elsewhere, and not fetched in clear from another machine', async () => {
    await using own = await startIdentityProvider([keyOf('ES256')]);
    let sent = 0;
    const cut = Promise.withResolvers<void>();
    own.answerBy((request, response) => {
      if (!request.url!.endsWith('/keys'))
        return response.end(JSON.stringify({ issuer: own.issuer, jwks_uri: `${own.issuer}/keys` }));
      const send = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, ' '))) sent += 65_536;
      };
      response.on('drain', send).once('close', () => cut.resolve());
      return send();
    });
    await using served = await startWith({}, own.issuer);
    const token = await own.sign(keyOf('ES256'));
    expect(await statusOf(token, served)).toBe(503);
    await cut.promise;
    expect(sent).toBeLessThan(32 * 1024 * 1024);
    expect(lastProblem()).toContain('its reply is longer than 262144 bytes');
    await using elsewhere = await startIdentityProvider([keyOf('ES256')]);
    own.answerBy((_request, response) =>
      response.writeHead(302, { location: `${elsewhere.issuer}/.well-known/openid-configuration` }).end(),
    );
    pass(2_000);
    expect(await statusOf(token, served)).toBe(503);
    own.answerBy((_request, response) =>
      response.end(JSON.stringify({ issuer: own.issuer, jwks_uri: 'http://keys.example/keys' })),
    );
    pass(4_000);
    expect(await statusOf(token, served)).toBe(503);
    expect(lastProblem()).toContain('its jwks_uri is no https URL');
  });

  test('are all tried for a token that names none of them', async () => {
    const [older, newer] = [await makeKey('ES256', 'older'), await makeKey('ES256', 'newer')];
    await using own = await startIdentityProvider([older, newer]);
    await using served = await startWith({}, own.issuer);
    for (const key of [older, newer]) {
      expect(await statusOf(await own.sign(key, {}, { kid: undefined }), served)).toBe(200);
      const expired = await own.sign(key, { exp: inSeconds(-3_600) }, { kid: undefined });
      expect((await served.request('GET', READ, { key: expired })).body.detail).toContain('expired');
    }
    const foreign = await own.sign(await makeKey('ES256', 'foreign'), {}, { kid: undefined });
    expect((await served.request('GET', READ, { key: foreign })).body.detail).toContain('not known');
  });

  test('can have a URL of their own; a symmetric, private or short key among them signs nothing', async () => {
    const { privateKey } = keyOf('ES256');
    const secret = Buffer.alloc(64, 1);
    const odd: JWK[] = [
      { kty: 'oct', kid: 'secret', k: secret.toString('base64url') },
      { kty: 'nonsense', kid: 'odd' },
      { kty: 'RSA', kid: 'short', n: 'AQAB', e: 'AQAB' },
    ];
    await using own = await startIdentityProvider([keyOf('ES256')]);
    own.published.push(...odd);
    await using served = await startWith({ OM_OIDC_JWKS_URL: `${own.issuer}/keys` }, 'https://issuer.example');
    const claims = { iss: 'https://issuer.example', aud: AUDIENCE, sub: 'canary-subject', exp: inSeconds(300) };
    expect(await statusOf(await own.sign(keyOf('ES256'), claims), served)).toBe(200);
    const bySecret = new SignJWT(claims).setProtectedHeader({ alg: 'HS512', kid: 'secret' });
    expect(await statusOf(await bySecret.sign(secret), served)).toBe(401);
    expect(await statusOf(await own.sign({ ...keyOf('ES256'), kid: 'odd', privateKey }, claims), served)).toBe(401);
    expect(await statusOf(await own.sign({ ...keyOf('RS256'), kid: 'short' }, claims), served)).toBe(401);
  });
});

describe('claims', () => {
  test('choose the tenant, of several by a header; a tenant that is not there is a 403', async () => {
    await using served = await startWith({ OM_OIDC_TENANT_CLAIM: 'org.tenants' });
    served.engine.control.createTenant('acme');
    served.engine.control.createTenant('umbrella');
    const { id } = await served.add({ content: 'In the default tenant.' });
    const get = async (org: unknown, tenant?: string) => {
      const headers = tenant === undefined ? {} : { 'x-cairn-tenant': tenant };
      return (await served.request('GET', `/memory/${id}`, { key: await sign({ org }), headers })).status;
    };
    expect(await get({ tenants: 'default' })).toBe(200);
    expect(await get({ tenants: ['nobody', 'acme', 'default'] })).toBe(404);
    expect(await get({ tenants: ['acme', 'default'] }, 'default')).toBe(200);
    expect(await get({ tenants: ['acme'] }, 'default')).toBe(403);
    expect(await get({ tenants: ['acme'] }, 'umbrella')).toBe(403);
    for (const org of [undefined, null, 'default', { tenants: 'nobody' }, { tenants: [] }, { tenants: 7 }])
      expect(await get(org), JSON.stringify(org)).toBe(403);
    for (const tenants of ['../default', '__proto__', '', [['default']], { default: true }, ['default', 1]])
      expect(await get({ tenants }), JSON.stringify(tenants)).toBe(403);
  });

  test('choose the role; without one of the four it is a 403', async () => {
    await using served = await startWith({ OM_OIDC_ROLE_CLAIM: 'https://example.org/roles' });
    const may = async (roles: unknown) => {
      const key = await sign({ 'https://example.org/roles': roles });
      const add = await served.request('POST', '/memory/add', {
        key,
        body: { content: `By ${JSON.stringify(roles)}.` },
      });
      return [await statusOf(key, served), add.status, await statusOf(key, served, '/admin/reembed')];
    };
    expect(await may('read')).toEqual([200, 403, 403]);
    expect(await may('add')).toEqual([403, 202, 403]);
    expect(await may('openid read profile write')).toEqual([200, 202, 403]);
    expect(await may(['staff', 'admin'])).toEqual([200, 202, 200]);
    for (const roles of [undefined, null, '', 'Admin', 'admin,write', true, ['admin', 7], { admin: true }])
      expect(await may(roles), JSON.stringify(roles)).toEqual([403, 403, 403]);
  });

  test('bind a token to a user, whom it cannot leave, an admin neither', async () => {
    await using served = await startWith({ OM_OIDC_ROLE_CLAIM: 'role', OM_OIDC_USER_CLAIM: 'sub' });
    const other = await served.add({ user_id: 'ben', content: 'The secret of Ben.' });
    for (const role of ['write', 'admin']) {
      const key = await sign({ sub: 'ana', role });
      const own = await served.add({ content: `Ana writes as ${role}.` }, key);
      expect((await served.request('GET', `/memory/${own.id}`, { key })).body['user_id']).toBe('ana');
      const status = async (method: string, path: string, body?: unknown) =>
        (await served.request(method, path, { key, ...(body === undefined ? {} : { body }) })).status;
      expect(await status('GET', `/memory/${other.id}`)).toBe(404);
      expect(await status('DELETE', `/memory/${other.id}`)).toBe(404);
      expect(await status('GET', `${READ}?user_id=ben`)).toBe(403);
      expect(await status('POST', '/memory/add', { content: 'x', user_id: 'ben' })).toBe(403);
      for (const path of ['/admin/reembed', '/admin/keys', '/admin/queues'])
        expect(await status('GET', path)).toBe(403);
      expect((await served.request('GET', READ, { key })).text).not.toContain('Ben');
    }
  });

  test('without a user for a token that should be bound to one are a 403', async () => {
    await using served = await startWith({ OM_OIDC_USER_CLAIM: 'user' });
    for (const user of [undefined, null, '', 7, ['ana'], { id: 'ana' }, 'a'.repeat(257), 'ana\n'])
      expect(await statusOf(await sign({ user }), served), JSON.stringify(user)).toBe(403);
  });
});

test('a server with an issuer is open to nobody without a key or token', async () => {
  await using served = await startWith({ OM_API_KEY: '', OM_HOST: '0.0.0.0' });
  expect(served.engine.control.isOpen()).toBe(false);
  expect((await served.request('GET', READ, { key: null })).status).toBe(401);
  expect(await statusOf(await sign(), served)).toBe(200);
});

test('streams end with their token, and when its tenant is erased', async () => {
  await using served = await startWith({ OM_OIDC_TENANT_CLAIM: 'tenant' });
  const { control } = served.engine;
  control.createTenant('acme');
  const inAcme = await sign({ tenant: ['default', 'acme'] });
  const { job_id } = await served.add({ content: 'Waits for a worker.' });
  // The tolerance of a minute is nearly over.
  const ending = await sign({ tenant: 'default', exp: inSeconds(-57) });
  const open = (token: string) =>
    fetch(`${served.url}/jobs/${job_id}/events`, { headers: { authorization: `Bearer ${token}` } });
  const streams = await Promise.all([open(ending), open(inAcme)]);
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  control.eraseTenant('acme');
  for (const stream of streams)
    expect(await stream.text()).toContain('event: gone\ndata: {"reason":"unauthenticated"}');
  expect((await open(ending)).status).toBe(401);
});

test('nothing of a token reaches a log, a metric or an error', async () => {
  await using served = await startWith({ OM_OIDC_USER_CLAIM: 'canary', OM_OIDC_TENANT_CLAIM: 'canary-tenant' });
  const tokens = [
    await sign({ 'canary-tenant': 'default', canary: 'canary-user' }),
    await sign({ 'canary-tenant': 'default', canary: ['canary-user'] }),
    await sign({ 'canary-tenant': 'canary-acme' }),
    await sign({ exp: inSeconds(-90) }),
    await sign({ aud: 'canary-audience' }),
    `${(await sign()).slice(0, -8)}AAAAAAAA`,
    await provider.sign(keyOf('ES256'), {}, { kid: 'canary-kid' }),
  ];
  const replies = await Promise.all(tokens.map((key) => served.request('GET', READ, { key })));
  expect(replies.map(({ status }) => status)).toEqual([200, 403, 403, 401, 401, 401, 401]);
  const all = [...replies.map(({ text }) => text), ...logged, await served.engine.metrics.registry.metrics()].join();
  expect(all).not.toContain('canary-');
  for (const token of tokens) for (const part of token.split('.')) expect(all).not.toContain(part);
});
