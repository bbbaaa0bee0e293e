import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  CLIENT_ID,
  CLIENT_SECRET,
  type CodeFlowProvider,
  startCodeFlowProvider,
} from '../support/code-flow-provider.ts';
import { silentLogger } from '../../src/engine/ports.ts';
import { browserTest, openConsole, useBrowser, violationsOf } from '../support/console-browser.ts';
import { createManualClock } from '../support/engine-fixture.ts';
import { AUDIENCE } from '../support/identity-provider.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Signing in to the console at an identity provider, by the code flow. */

let api: TestApi;
let provider: CodeFlowProvider;
useBrowser();

beforeAll(async () => {
  provider = await startCodeFlowProvider();
  api = await startApi({
    folder: tempFolder(),
    settings: {
      OM_OIDC_ISSUER: provider.issuer,
      OM_OIDC_AUDIENCE: AUDIENCE,
      OM_OIDC_ROLE_CLAIM: 'roles',
      OM_OIDC_USER_CLAIM: 'email',
      OM_OIDC_CLIENT_ID: CLIENT_ID,
      OM_OIDC_CLIENT_SECRET: CLIENT_SECRET,
    },
  });
});
beforeEach(() => {
  Object.assign(provider, { claims: {}, accessClaims: undefined, spoiled: {}, isDenying: false, failing: undefined });
});
afterAll(async () => {
  await api.stop();
  await provider[Symbol.asyncDispose]();
});

const open = (view: string) => openConsole(api.url, view, { also: [new URL(provider.issuer).origin] });
const BUTTON = /Sign in at 127\.0\.0\.1/;

/** Signs out, and waits until the browser is back from the provider, which it leaves the page for. */
async function signOut(page: Page): Promise<void> {
  const isBack = page.waitForEvent('load');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await isBack;
}

describe('in a browser', () => {
  browserTest('one comes back to the view that one wanted, as who one is, and is signed out at both', async () => {
    const id = (await api.add({ content: 'Nina grows lemons.', user_id: 'nina@example.org' })).id;
    await api.add({ content: 'Otto grows plums.', user_id: 'otto@example.org' });
    provider.claims = { roles: ['write'], email: 'nina@example.org' };
    await using opened = await open(`memory/${id}`);
    const { page, context } = opened;
    await page.getByRole('link', { name: BUTTON }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await page.getByRole('link', { name: BUTTON }).click();
    await page.getByText('Nina grows lemons.').waitFor();
    expect(page.url()).toContain(`#/memory/${id}`);
    const cookies = await context.cookies(api.url);
    expect(cookies).toMatchObject([{ httpOnly: true, sameSite: 'Strict' }]);
    await page.getByText('Sees the memories of nina@example.org only').waitFor();
    await page.getByRole('link', { name: 'Memories' }).first().click();
    await page.getByRole('list', { name: 'List of memories' }).waitFor();
    expect(await page.getByText('Otto grows plums.').count()).toBe(0);
    await signOut(page);
    await page.getByRole('link', { name: BUTTON }).waitFor();
    expect(provider.ended).toHaveLength(1);
    expect(new URLSearchParams(provider.ended[0]).get('client_id')).toBe(CLIENT_ID);
    expect(await context.cookies(api.url)).toEqual([]);
  });

  browserTest('an access token that is for the API says the role; who has none is told so', async () => {
    provider.claims = { roles: ['admin'], email: 'pia@example.org' };
    provider.accessClaims = { roles: ['read'], email: 'pia@example.org' };
    await using opened = await open('browse');
    const { page } = opened;
    await page.getByRole('link', { name: BUTTON }).click();
    await page.getByText('role read').waitFor();
    expect(await page.getByRole('button', { name: 'Add a memory' }).count()).toBe(0);
    provider.accessClaims = undefined;
    provider.claims = { email: 'pia@example.org' };
    await signOut(page);
    await page.getByRole('link', { name: BUTTON }).click();
    await page.getByText('your account has no role here').waitFor();
    provider.isDenying = true;
    await page.getByRole('link', { name: BUTTON }).click();
    await page.getByText('did not sign you in').waitFor();
  });
});

describe('over HTTP', () => {
  /** Goes to the provider and back. @returns what the callback needs, and its cookie */
  async function comeBack() {
    const begun = await fetch(`${api.url}/console/oidc`, { redirect: 'manual' });
    expect(begun.status).toBe(302);
    const cookie = begun.headers.getSetCookie()[0]!;
    expect(cookie).toMatch(/HttpOnly; SameSite=Lax; Max-Age=600/);
    const back = await fetch(begun.headers.get('location')!, { redirect: 'manual' });
    return { url: back.headers.get('location')!, cookie: cookie.split(';')[0]! };
  }
  const call = async (url: string, cookie?: string) => {
    const reply = await fetch(url, { redirect: 'manual', headers: cookie === undefined ? {} : { cookie } });
    const session = reply.headers.getSetCookie().some((text) => /^cairn_session_\d+=[\w-]/.test(text));
    return { status: reply.status, location: reply.headers.get('location'), session };
  };
  const REFUSED = { status: 302, location: expect.stringContaining('problem=unauthenticated'), session: false };

  beforeEach(() => {
    provider.claims = { roles: 'write', email: 'rosa@example.org' };
  });

  test('a right answer opens a session once; without the cookie, with another state or code it opens none', async () => {
    const { url, cookie } = await comeBack();
    expect(await call(url)).toEqual(REFUSED);
    const other = new URL(url);
    other.searchParams.set('state', 'x'.repeat(43));
    expect(await call(other.href, cookie)).toEqual(REFUSED);
    expect(await call(url, cookie)).toEqual({ status: 302, location: `${api.url}/console`, session: true });
    expect(await call(url, cookie)).toEqual(REFUSED);
    const second = await comeBack();
    expect(await call(second.url, cookie)).toEqual(REFUSED);
  });

  test('the provider is asked once for each sign-in that began here, and for no other', async () => {
    const { url, cookie } = await comeBack();
    const [name, value] = cookie.split('=') as [string, string];
    const before = provider.exchanges;
    const asked = () => provider.exchanges - before;
    const secrets = { state: 'mine', nonce: 'mine', verifier: 'x'.repeat(43), until: Date.now() + 60_000 };
    const invented = Buffer.from(JSON.stringify(secrets)).toString('base64url');
    const ofMine = new URL(url);
    ofMine.searchParams.set('state', 'mine');
    for (const forged of [invented, `${invented}.`, `${invented}.${value.split('.')[1]}`])
      expect(await call(ofMine.href, `${name}=${forged}`)).toEqual(REFUSED);
    expect(asked()).toBe(0);
    const answers = await Promise.all(Array.from({ length: 5 }, () => call(url, cookie)));
    expect([answers.filter(({ session }) => session).length, asked()]).toEqual([1, 1]);
    expect(await call(url, cookie)).toEqual(REFUSED);
    expect(asked()).toBe(1);
  });

  test.each(['status', 'connection'] as const)('a provider that fails (%s) is told as unavailable', async (failing) => {
    const { url, cookie } = await comeBack();
    provider.failing = failing;
    const { location, session } = await call(url, cookie);
    expect([location, session]).toEqual([expect.stringContaining('problem=unavailable'), false]);
  });

  test.each([
    ['another nonce', { nonce: 'of somebody else' }],
    ['another audience', { aud: 'another-client' }],
    ['another issuer', { iss: 'https://evil.example' }],
    ['a time that is over', { exp: 1_000 }],
  ])('an ID token with %s opens none', async (_, spoiled) => {
    provider.spoiled = spoiled;
    const { url, cookie } = await comeBack();
    expect(await call(url, cookie)).toEqual(REFUSED);
  });
});

test('invented answers are slowed down as wrong keys, and nothing of them is logged', async () => {
  const reasons: unknown[] = [];
  const warn = (fields: object) => void reasons.push((fields as { reason?: unknown }).reason);
  await using slow = await startApi({
    folder: tempFolder(),
    // A clock that stands, as the first pause lasts no longer than a second.
    clock: createManualClock(Date.now()),
    logger: { ...silentLogger, warn },
    settings: {
      OM_OIDC_ISSUER: provider.issuer,
      OM_OIDC_AUDIENCE: AUDIENCE,
      OM_OIDC_CLIENT_ID: CLIENT_ID,
      OM_OIDC_CLIENT_SECRET: CLIENT_SECRET,
      OM_MAX_WRONG_KEYS: '2',
    },
  });
  const answer = async (query: string) => {
    const begun = await fetch(`${slow.url}/console/oidc`, { redirect: 'manual' });
    const cookie = begun.headers.getSetCookie()[0]!.split(';')[0]!;
    const state = new URL(begun.headers.get('location')!).searchParams.get('state')!;
    const url = `${slow.url}/console/oidc/callback?state=${state}&${query}`;
    const { headers } = await fetch(url, { redirect: 'manual', headers: { cookie } });
    return /problem=(\w+)/.exec(headers.get('location')!)?.[1];
  };
  const answers = [await answer('code=invented'), await answer(`error=${'canary%20'.repeat(100)}`)];
  expect([...answers, await answer('code=x'), await answer('code=y')]).toEqual([
    ...['unauthenticated', 'unauthenticated', 'unauthenticated', 'rate_limited'],
  ]);
  expect(reasons).toEqual(['invalid_grant', 'OAUTH_AUTHORIZATION_RESPONSE_ERROR', 'invalid_grant']);
});

test('without a client there is nothing to sign in at', async () => {
  await using plain = await startApi({ folder: tempFolder() });
  for (const path of ['/console/oidc', '/console/oidc/callback?code=x&state=y'])
    expect((await plain.request('GET', path, { key: null })).status).toBe(404);
  expect((await plain.request('GET', '/console/session', { key: null })).body['identity_provider']).toBeNull();
});
