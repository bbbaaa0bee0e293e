import type { Response } from 'express';
import { z } from 'zod';
import { EngineError, type Holder, isEngineError } from '../../engine/index.ts';
import {
  CONSOLE_HEADERS,
  type ConsoleFile,
  findConsoleFile,
  getConsolePage,
  readAhead,
} from '../console/console-files.ts';
import { clientAddresses } from '../../client-address.ts';
import { acceptsGzip } from '../accepts-gzip.ts';
import { readSignIn } from '../console/arriving-sign-ins.ts';
import { readSession, requireConsoleHeader, sessionCookie } from '../console/session-cookie.ts';
import { admitSignedIn, awayCookie, callbackUrl, codeFlowOf } from '../console/provider-sign-in.ts';
import { changeControl } from '../control-turn.ts';
import { publicUrl } from '../public-url.ts';
import { type Call, openRoute, type Route } from '../route.ts';
import { type SessionItem, sessionReply, signedOutReply, signInSchema } from '../schemas/console.ts';
import { noQuery } from '../schemas/values.ts';

/**
 * Longest body of a sign-in (bytes), which is read before its key can be checked: a key has at most 4,096 characters.
 */
const MAX_SIGN_IN_BYTES = 8 * 1024;

/** Routes of the console: its page, the files of the page, and its sessions. */
export const consoleRoutes: readonly Route[] = [
  openRoute({
    method: 'get',
    path: '/console',
    name: 'getConsole',
    summary: 'Shows the console, a page about everything that is stored',
    description: 'The page is for a browser. It loads files of this server alone.',
    replies: {
      200: {
        description: 'The page.',
        media: [{ type: 'text/html', schema: z.string(), example: '<!doctype html>' }],
      },
    },
    async handle({ response }) {
      const page = await getConsolePage();
      response.setHeaders(CONSOLE_HEADERS);
      sendFile(response, page);
      void readAhead();
    },
  }),
  openRoute({
    method: 'get',
    path: '/console/session',
    name: 'getConsoleSession',
    summary: 'Shows in whose name the console makes requests, or that nobody is signed in',
    replies: { 200: { description: 'The caller, and whether a session is under way.', json: sessionReply } },
    async handle(call) {
      call.send(200, await describeSession(call));
    },
  }),
  openRoute({
    method: 'post',
    path: '/console/session',
    name: 'openConsoleSession',
    summary: 'Exchanges a key for a session',
    description:
      'The session is a cookie that scripts cannot read and other sites cannot use. It ends after 12 hours, when its ' +
      'key expires, with `DELETE /console/session`, and within a second after its key was revoked. A key has at most ' +
      '50 sessions; a further one ends the oldest. This request, and every write with the cookie, must carry the ' +
      'header `x-cairn-console`, which a form of another site cannot send. While no key is configured, no session is ' +
      'opened, as nobody needs one.',
    query: noQuery,
    body: { json: signInSchema, maxBytes: MAX_SIGN_IN_BYTES, example: { key: 'cairn_5f0c2a9d81e6b374_…' } },
    replies: { 200: { description: 'The caller; the cookie of the session is in `set-cookie`.', json: sessionReply } },
    errors: {
      unauthenticated: 'The key is not known, has expired or was revoked.',
      rate_limited:
        'Too many wrong keys came from this address, the key opened 30 sessions within a minute, or 32 sign-ins from ' +
        'this address are half sent.',
    },
    async handle(call) {
      const { api, request, response, admit, readBody, send } = call;
      requireConsoleHeader(request);
      const address = clientAddresses(api.engine.config.trustedProxies)(request);
      const { key } = await readSignIn(request, address, readBody);
      const holder = await admit('read', requireKeyForm(key, api.engine.config.OM_API_KEY));
      if (!api.engine.control.isOpen()) {
        const session = await changeControl({ api, principal: holder }, 'openSession', holder);
        response.setHeader('set-cookie', sessionCookie(request, session));
      }
      send(200, { ...(await describe(call, holder)), has_session: !api.engine.control.isOpen() });
    },
  }),
  openRoute({
    method: 'delete',
    path: '/console/session',
    name: 'closeConsoleSession',
    summary: 'Ends the session',
    query: noQuery,
    replies: {
      200: { description: 'The session is ended. The body describes a caller without it.', json: signedOutReply },
    },
    async handle(call) {
      const { api, request, response, send } = call;
      requireConsoleHeader(request);
      const secret = readSession(request);
      const holder = secret === undefined ? undefined : api.engine.control.sessions.find(secret);
      if (secret !== undefined && holder !== undefined)
        await changeControl({ api, principal: holder }, 'closeSession', secret);
      response.setHeader('set-cookie', sessionCookie(request, { secret: '', expiresAt: 0 }));
      send(200, { ...(await describeSession(call)), sign_out_url: await signOutUrl(call, holder) });
    },
  }),
  openRoute({
    method: 'get',
    path: '/console/oidc',
    name: 'beginProviderSignIn',
    summary: 'Sends the browser to the identity provider to sign in',
    description:
      'The sign-in is an authorization code flow with PKCE, state and nonce, for the client `OM_OIDC_CLIENT_ID`. ' +
      'Open this in a browser: the clients of Cairn follow no redirect, and throw `no_cairn`.',
    query: noQuery,
    replies: { 302: { description: 'The address at the provider is in `location`.', headers: ['location'] } },
    errors: {
      not_found: 'No identity provider is configured for signing in.',
      unavailable: 'The identity provider does not answer.',
    },
    async handle({ api: { engine }, request, response }) {
      const { url, secrets } = await codeFlowOf(engine).begin(callbackUrl(request, engine));
      response.setHeader('set-cookie', await awayCookie(request, engine, secrets));
      response.writeHead(302, { location: url.href }).end();
    },
  }),
  openRoute({
    method: 'get',
    path: '/console/oidc/callback',
    name: 'endProviderSignIn',
    summary: 'Takes the browser back from the identity provider, and opens a session',
    description:
      'The role, tenant and user are those that the claims say, as for a token (docs/guides/tokens.md). The session ' +
      'ends after 12 hours, or with `DELETE /console/session`. If the sign-in failed, no session is opened, and the ' +
      'console shows why. It is for a browser: the clients of Cairn follow no redirect, and throw `no_cairn`.',
    replies: { 302: { description: 'The console is in `location`.', headers: ['location'] } },
    errors: { not_found: 'No identity provider is configured for signing in.' },
    async handle(call) {
      const { api, request, response } = call;
      const { engine } = api;
      codeFlowOf(engine);
      const base = publicUrl(request, engine.config);
      const cookies = [await awayCookie(request, engine)];
      let view = '';
      try {
        const holder = await admitSignedIn(call);
        const session = await changeControl({ api, principal: holder }, 'openSession', holder);
        cookies.push(sessionCookie(request, session, base.startsWith('https:')));
      } catch (error) {
        const { code } = NOT_SIGNED_IN.find(({ code }) => isEngineError(error, code)) ?? {};
        if (code === undefined) throw error;
        view = `#/sign-in?problem=${code}`;
      }
      response.setHeader('set-cookie', cookies);
      response.writeHead(302, { location: `${base}/console${view}` }).end();
    },
  }),
  openRoute({
    method: 'get',
    path: '/console/:file',
    name: 'getConsoleFile',
    summary: 'Sends a script, style or picture of the console',
    params: { file: { description: 'Name of the file, with a hash of its content.', example: 'console-B3x9.js' } },
    replies: {
      200: {
        description: 'The file.',
        media: [
          { type: 'text/javascript', schema: z.string(), example: "'use strict';" },
          { type: 'text/css', schema: z.string(), example: 'body { margin: 0 }' },
          { type: 'image/svg+xml', schema: z.string(), example: '<svg xmlns="http://www.w3.org/2000/svg"/>' },
        ],
      },
    },
    errors: { not_found: 'The console has no such file.' },
    async handle({ params, response }) {
      const file = await findConsoleFile(params.file);
      if (file === undefined) throw new EngineError('not_found', 'no such path');
      response.setHeader('cache-control', 'public, max-age=31536000, immutable');
      sendFile(response, file);
    },
  }),
];

function sendFile(response: Response, { type, bytes, gzipped }: ConsoleFile): void {
  const isGzipped = acceptsGzip(response.req);
  response.setHeader('content-type', type);
  response.setHeader('vary', 'accept-encoding');
  if (isGzipped) response.setHeader('content-encoding', 'gzip');
  response.end(isGzipped ? gzipped : bytes);
}

/** Forms of what is plainly no whole key, each with the words for it. */
const NO_KEYS = [
  [/\s/, 'has a blank or a line break in it, which no key has'],
  [/^(?:cairn_)?[0-9a-f]{16}$/, 'this is the id of a key; the whole key was shown when it was made'],
  [/^cairn_(?![0-9a-f]{16}_[\w-]{43}$)/, 'begins like a key and is incomplete: a key has 66 characters'],
] as const;

/**
 * Returns the key, unless it is plainly no whole key (`NO_KEYS`). Such a key is refused with a message that says so,
 * instead of counting as a wrong key, which tells nothing to someone who guesses keys. Any other text is returned, as
 * tokens may have any form, and so is a text of a form that OM_API_KEY has.
 * @param own the setting OM_API_KEY
 * @throws EngineError `invalid` for such a key
 */
function requireKeyForm(key: string, own: string | undefined): string {
  const problem = NO_KEYS.find(([form]) => form.test(key) && (own === undefined || !form.test(own)))?.[1];
  if (problem !== undefined) throw new EngineError('invalid', `key: ${problem}`);
  return key;
}

/** Codes of the errors of a sign-in at the provider whose reason the console shows; others are answered as errors. */
const NOT_SIGNED_IN = [
  { code: 'unauthenticated' },
  { code: 'forbidden' },
  { code: 'rate_limited' },
  { code: 'unavailable' },
] as const;

/**
 * Returns the address at which the provider ends its own session. It is null without a session, for the session of a
 * key, and if the provider names no such address or does not answer.
 */
async function signOutUrl({ api: { engine }, request }: Call, holder: Holder | undefined): Promise<string | null> {
  if (engine.config.OM_OIDC_CLIENT_ID === undefined || !holder?.keyId.startsWith('oidc:')) return null;
  const url = await codeFlowOf(engine)
    .endUrl(`${publicUrl(request, engine.config)}/console`)
    .catch(() => null);
  return url?.href ?? null;
}

const NOT_ADMITTED = ['unauthenticated', 'forbidden', 'rate_limited'] as const;

/** Describes the caller of a request. A caller who is not admitted is described as one without a key. */
async function describeSession(call: Call): Promise<SessionItem> {
  try {
    return await describe(call, await call.admit('read'));
  } catch (error) {
    // A caller who is not admitted is described like one without a key, also after too many wrong keys.
    if (NOT_ADMITTED.some((code) => isEngineError(error, code))) return describe(call, null);
    throw error;
  }
}

async function describe({ api, request }: Call, holder: Holder | null): Promise<SessionItem> {
  const { control, config } = api.engine;
  const secret = readSession(request);
  return {
    version: api.version,
    is_open: control.isOpen(),
    has_session: secret !== undefined && control.sessions.find(secret) !== undefined,
    identity_provider: config.OM_OIDC_CLIENT_ID === undefined ? null : new URL(config.OM_OIDC_ISSUER!).host,
    caller: holder && {
      key_id: holder.keyId,
      role: holder.role,
      tenant: holder.tenantId,
      tenants: [...holder.tenantIds],
      user_id: holder.userId ?? null,
      tags: [...(holder.tags ?? [])],
      expires_at: holder.expiresAt,
    },
  };
}
