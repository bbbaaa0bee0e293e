/**
 * Signing in to the console at an identity provider (`OM_OIDC_CLIENT_ID`). The browser goes to the provider and comes
 * back with a code. A request that comes from another site does not carry the cookie of a session, which is
 * `SameSite=Strict`. So the secrets of a sign-in in progress have a cookie of their own, `SameSite=Lax`, which gives no
 * access. It is signed, and counts once in each process, so that nobody can make this server call the provider with
 * invented answers.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { type CodeFlow, type CodeFlowSecrets, createCodeFlow, isToken } from '../../engine/adapters/index.ts';
import { DEFAULT_TENANT, type Engine, EngineError, type Holder, isEngineError } from '../../engine/index.ts';
import { clientAddresses } from '../../client-address.ts';
import { publicUrl } from '../public-url.ts';
import type { Call } from '../route.ts';
import { holderOfToken } from '../token-holder.ts';
import { cookieNamed } from './session-cookie.ts';

/** Longest time between leaving for the identity provider and coming back from it during a sign-in, in seconds. */
const AWAY_S = 600;
/** Name of the setting that holds the key by which cookies are signed. */
const SIGNING_KEY = 'sign_in_key';
/** Greatest number of sign-ins that a process remembers as finished; the one finished first is forgotten first. */
const MAX_FINISHED = 10_000;
const flows = new WeakMap<Engine, CodeFlow>();
/** Keys to sign with that are being made. The sign-ins of anybody wait for one change of the control database. */
const keysInMaking = new WeakMap<Engine, Promise<string>>();
/** States of the sign-ins that an engine has finished, or tried to, for as long as their cookies count. */
const finished = new WeakMap<Engine, LRUCache<string, true>>();

/**
 * Returns the code flow of an engine, which is made once.
 * @throws EngineError `not_found` if `OM_OIDC_CLIENT_ID` is not set
 */
export function codeFlowOf(engine: Engine): CodeFlow {
  if (engine.config.OM_OIDC_CLIENT_ID === undefined)
    throw new EngineError('not_found', 'no identity provider is configured for signing in (OM_OIDC_CLIENT_ID)');
  const flow = flows.get(engine) ?? createCodeFlow(engine);
  flows.set(engine, flow);
  return flow;
}

/** Returns the address to which the provider sends the browser back. It must be registered with the provider. */
export function callbackUrl(request: IncomingMessage, { config }: Engine): string {
  return `${publicUrl(request, config)}/console/oidc/callback`;
}

/**
 * Makes the `set-cookie` that keeps the secrets of a sign-in for ten minutes, while the browser is at the provider.
 * Without `secrets` it removes the cookie.
 */
export async function awayCookie(request: IncomingMessage, engine: Engine, secrets?: CodeFlowSecrets): Promise<string> {
  const value = secrets === undefined ? '' : await signed({ ...secrets, until: Date.now() + AWAY_S * 1000 }, engine);
  const isSecure = publicUrl(request, engine.config).startsWith('https:');
  const parts = [`${awayName(request)}=${value}`, 'Path=/', 'HttpOnly', 'SameSite=Lax'];
  parts.push(`Max-Age=${secrets === undefined ? 0 : AWAY_S}`, ...(isSecure ? ['Secure'] : []));
  return parts.join('; ');
}

/**
 * Reads the secrets of a sign-in from its cookie, and notes that the sign-in is finished, so that this process takes
 * its cookie no second time.
 * @param state the `state` that the browser brought back
 * @throws EngineError `unauthenticated` if the cookie is missing, was not made here, is over ten minutes old, belongs
 *   to another state, or was taken by this process before
 */
async function takeSecrets(request: IncomingMessage, engine: Engine, state: string | null): Promise<CodeFlowSecrets> {
  const [value = '', signature = ''] = (cookieNamed(request, awayName(request)) ?? '').split('.');
  const [given, right] = [Buffer.from(signature, 'base64url'), await signatureOf(value, engine)];
  const away = given.length === right.length && timingSafeEqual(given, right) ? awayOf(value) : undefined;
  if (away !== undefined) {
    const { until, ...secrets } = away;
    const known = finished.get(engine) ?? new LRUCache<string, true>({ max: MAX_FINISHED, ttl: AWAY_S * 1000 });
    finished.set(engine, known);
    if (until > Date.now() && secrets.state === state && !known.has(state)) {
      known.set(state, true);
      return secrets;
    }
  }
  throw new EngineError('unauthenticated', 'this sign-in was not begun here, or took too long');
}

/** What the cookie of a sign-in in progress holds: its secrets, and the time until which it counts (Unix ms). */
interface Away extends CodeFlowSecrets {
  readonly until: number;
}

/** Reads the value of a cookie; undefined for anything but the fields of `Away`. */
function awayOf(value: string): Away | undefined {
  try {
    const { state, nonce, verifier, until } = JSON.parse(Buffer.from(value, 'base64url').toString()) as Away;
    const isWhole = [state, nonce, verifier].every((word) => typeof word === 'string') && typeof until === 'number';
    return isWhole ? { state, nonce, verifier, until } : undefined;
  } catch {
    return undefined;
  }
}

async function signed(away: Away, engine: Engine): Promise<string> {
  const value = Buffer.from(JSON.stringify(away)).toString('base64url');
  return `${value}.${(await signatureOf(value, engine)).toString('base64url')}`;
}

/** Signs the value of a cookie. */
async function signatureOf(value: string, engine: Engine): Promise<Buffer> {
  return createHmac('sha256', await signingKeyOf(engine))
    .update(value)
    .digest();
}

/**
 * Returns the key by which cookies are signed: a random one, which all processes that serve this API find in the
 * control database. It is made if it is not there yet. It is not made of the keys in the settings, which could then be
 * guessed from a cookie.
 */
async function signingKeyOf(engine: Engine): Promise<string> {
  const stored = engine.control.getSetting(DEFAULT_TENANT, SIGNING_KEY);
  if (stored !== undefined) return stored;
  const made =
    keysInMaking.get(engine) ??
    engine
      .changeControl(null, 'makeSetting', DEFAULT_TENANT, SIGNING_KEY, randomBytes(32).toString('base64url'))
      .finally(() => keysInMaking.delete(engine));
  keysInMaking.set(engine, made);
  return made;
}

const awayName = (request: IncomingMessage) => `cairn_away_${request.socket.localPort ?? 0}`;

/**
 * Finishes a sign-in at the identity provider. Returns the holder: the caller as whom the browser session acts, with
 * tenant and role. Its rights are those of the access token if that is a token for this API, and otherwise those of the
 * ID token. The session may last longer than either token. An answer that the provider or the secrets refute counts as
 * a wrong key of its address: whoever invents answers would otherwise make this server call the provider without end.
 * @throws EngineError `unauthenticated` if the sign-in was not begun here or took too long, or the provider's answer
 *   does not hold; `forbidden` for a role that may not read, and for a claim that is missing, of a wrong type, or names
 *   no tenant or role that exists; `rate_limited` after too many wrong answers or keys from one address; `unavailable`
 *   if the provider does not answer; `not_found` if `OM_OIDC_CLIENT_ID` is not set
 */
export async function admitSignedIn({ api: { engine }, request, admit }: Call): Promise<Holder> {
  const { search, searchParams } = new URL(request.url ?? '', 'http://localhost');
  const flow = codeFlowOf(engine);
  const address = clientAddresses(engine.config.trustedProxies)(request);
  const pauseMs = engine.guesses.pauseMs(address);
  if (pauseMs > 0)
    throw new EngineError('rate_limited', 'too many wrong keys came from your address', { retryAfterMs: pauseMs });
  const secrets = await takeSecrets(request, engine, searchParams.get('state'));
  const signedIn = await flow
    .finish(new URL(callbackUrl(request, engine) + search), secrets)
    .catch((error: unknown) => {
      if (isEngineError(error, 'unauthenticated')) engine.guesses.noteWrong(address);
      throw error;
    });
  const { subject, claims, accessToken } = signedIn;
  const holder = isForHere(accessToken, engine.config.OM_OIDC_AUDIENCE!)
    ? await admit('read', accessToken)
    : holderOfToken({ subject, claims, expiresAt: Infinity }, engine);
  if (holder.role === 'add') throw new EngineError('forbidden', 'the console needs a role that reads');
  return { ...holder, expiresAt: null };
}

/**
 * Tells whether a token names this API as its audience. It does not check the token's signature, which the caller does
 * later.
 */
function isForHere(token: string, audience: string): boolean {
  if (!isToken(token)) return false;
  try {
    const { aud } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { readonly aud?: unknown };
    return [aud].flat().includes(audience);
  } catch {
    return false;
  }
}
