/**
 * Signing in to the console at an identity provider (`OM_OIDC_CLIENT_ID`). The browser leaves for the provider and
 * comes back with a code. A request that comes from another site does not carry the cookie of a session, which is
 * `SameSite=Strict`, so what is kept in between has a cookie of its own, `SameSite=Lax`, which opens nothing.
 */
import type { IncomingMessage } from 'node:http';
import { type CodeFlow, type CodeFlowSecrets, createCodeFlow, isToken } from '../../engine/adapters/index.ts';
import { type Engine, EngineError, type Holder } from '../../engine/index.ts';
import { publicUrl } from '../public-url.ts';
import type { Call } from '../route.ts';
import { holderOfToken } from '../token-holder.ts';
import { cookieNamed } from './session-cookie.ts';

/** Time that somebody may take at the provider (s). */
const AWAY_S = 600;
const flows = new WeakMap<Engine, CodeFlow>();

/** Returns the code flow of an engine. Throws EngineError `not_found` where none is configured. */
export function codeFlowOf(engine: Engine): CodeFlow {
  if (engine.config.OM_OIDC_CLIENT_ID === undefined)
    throw new EngineError('not_found', 'no identity provider is configured for signing in (OM_OIDC_CLIENT_ID)');
  const flow = flows.get(engine) ?? createCodeFlow(engine);
  flows.set(engine, flow);
  return flow;
}

/** Where the provider sends the browser back to; it must be registered there. */
export function callbackUrl(request: IncomingMessage, { config }: Engine): string {
  return `${publicUrl(request, config)}/console/oidc/callback`;
}

/** Makes the `set-cookie` that keeps what is needed when the browser comes back; without secrets it is taken away. */
export function awayCookie(request: IncomingMessage, engine: Engine, secrets?: CodeFlowSecrets): string {
  const value = secrets === undefined ? '' : Buffer.from(JSON.stringify(secrets)).toString('base64url');
  const isSecure = publicUrl(request, engine.config).startsWith('https:');
  const parts = [`${awayName(request)}=${value}`, 'Path=/', 'HttpOnly', 'SameSite=Lax'];
  parts.push(`Max-Age=${secrets === undefined ? 0 : AWAY_S}`, ...(isSecure ? ['Secure'] : []));
  return parts.join('; ');
}

/** Reads that cookie. Throws EngineError `unauthenticated` if it is absent, as after ten minutes, or was made up. */
function readAway(request: IncomingMessage): CodeFlowSecrets {
  try {
    const text = Buffer.from(cookieNamed(request, awayName(request)) ?? '', 'base64url').toString();
    const { state, nonce, verifier } = JSON.parse(text) as CodeFlowSecrets;
    if ([state, nonce, verifier].every((word) => typeof word === 'string')) return { state, nonce, verifier };
  } catch {
    // It is answered as an absent one.
  }
  throw new EngineError('unauthenticated', 'this sign-in was not begun here, or took too long');
}

const awayName = (request: IncomingMessage) => `cairn_away_${request.socket.localPort ?? 0}`;

/**
 * Says in whose name somebody works who signed in: by the claims of the access token if that is a token for this API,
 * as `Authorization: Bearer` takes it, and by those of the ID token otherwise. The session is not bound to the end of
 * either token.
 * @throws EngineError `forbidden` as `holderOfToken`, and for somebody who may not read
 */
export async function admitSignedIn({ api: { engine }, request, admit }: Call): Promise<Holder> {
  const { search } = new URL(request.url ?? '', 'http://localhost');
  const flow = codeFlowOf(engine);
  const signedIn = await flow.finish(new URL(callbackUrl(request, engine) + search), readAway(request));
  const { subject, claims, accessToken } = signedIn;
  const holder = isForHere(accessToken, engine.config.OM_OIDC_AUDIENCE!)
    ? await admit('read', accessToken)
    : holderOfToken({ subject, claims, expiresAt: Infinity }, engine);
  if (holder.role === 'add') throw new EngineError('forbidden', 'the console needs a role that reads');
  return { ...holder, expiresAt: null };
}

/** Whether a token names this API; what it says is believed only after its signature was checked. */
function isForHere(token: string, audience: string): boolean {
  if (!isToken(token)) return false;
  try {
    const { aud } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { readonly aud?: unknown };
    return [aud].flat().includes(audience);
  } catch {
    return false;
  }
}
