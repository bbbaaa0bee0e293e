import { createHash, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Claims, type IdentityProvider, makeKey, startIdentityProvider } from './identity-provider.ts';

export const CLIENT_ID = 'cairn-console';
export const CLIENT_SECRET = 'the secret of the client, kept by two';

export interface CodeFlowProvider extends AsyncDisposable {
  readonly issuer: string;
  /** Claims of the ID token, which say who is signed in at the provider. */
  claims: Claims;
  /** Claims of an access token for the API; if undefined, the access token is opaque (a random text). */
  accessClaims: Claims | undefined;
  /** Claims that replace the right ones in every ID token, so that a test can make tokens wrong. */
  spoiled: Claims;
  /** Whether the provider refuses to sign anybody in. */
  isDenying: boolean;
  /** How the token endpoint fails: with an error status, or by closing the connection. If undefined, it works. */
  failing: 'status' | 'connection' | undefined;
  /** Number of times that the token endpoint was called. */
  exchanges: number;
  /** Address that the provider names for ending a session. */
  endAddress: string;
  /** Query strings of the requests that ended a session at the provider. */
  readonly ended: readonly string[];
}

interface Grant {
  readonly challenge: string;
  readonly nonce: string | null;
  readonly redirectUri: string;
}

/**
 * Starts a real OpenID provider with the authorization code flow. It checks what a provider must check: the client and
 * its secret, the registered address, PKCE by S256, and that a code is used once.
 */
export async function startCodeFlowProvider(): Promise<CodeFlowProvider> {
  const key = await makeKey('RS256');
  const provider: IdentityProvider = await startIdentityProvider([key]);
  const grants = new Map<string, Grant>();
  const ended: string[] = [];
  const state: CodeFlowProvider = {
    issuer: provider.issuer,
    claims: {},
    accessClaims: undefined,
    spoiled: {},
    isDenying: false,
    failing: undefined,
    exchanges: 0,
    endAddress: `${provider.issuer}/end`,
    ended,
    [Symbol.asyncDispose]: () => provider.stop(),
  };
  const json = (response: ServerResponse, status: number, body: object) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

  const authorize = ({ searchParams: asked }: URL, response: ServerResponse) => {
    const redirectUri = asked.get('redirect_uri')!;
    const isRight =
      asked.get('client_id') === CLIENT_ID &&
      asked.get('response_type') === 'code' &&
      asked.get('code_challenge_method') === 'S256' &&
      asked.get('scope')!.split(' ').includes('openid') &&
      /^http:\/\/(127\.0\.0\.1|localhost):\d+\/console\/oidc\/callback$/.test(redirectUri);
    if (!isRight) return response.writeHead(400).end('no such client, or a wrong request');
    const back = new URL(redirectUri);
    back.searchParams.set('state', asked.get('state')!);
    if (state.isDenying) back.searchParams.set('error', 'access_denied');
    else {
      const code = randomUUID();
      grants.set(code, { challenge: asked.get('code_challenge')!, nonce: asked.get('nonce'), redirectUri });
      back.searchParams.set('code', code);
    }
    return response.writeHead(302, { location: back.href }).end();
  };

  const token = async (request: IncomingMessage, response: ServerResponse) => {
    state.exchanges += 1;
    if (state.failing === 'connection') return request.destroy();
    if (state.failing === 'status') return response.writeHead(503).end();
    const basic = Buffer.from((request.headers.authorization ?? '').replace(/^Basic /, ''), 'base64').toString();
    const form = new URLSearchParams(await text(request));
    const grant = grants.get(form.get('code') ?? '');
    grants.delete(form.get('code') ?? '');
    // Both are encoded as in a form (RFC 6749, 2.3.1).
    const [id, secret] = basic.split(':').map((part) => decodeURIComponent(part.replaceAll('+', ' ')));
    const isClient = id === CLIENT_ID && secret === CLIENT_SECRET;
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (!isClient) return json(response, 401, { error: 'invalid_client' });
    if (grant === undefined || grant.challenge !== challenge || grant.redirectUri !== form.get('redirect_uri'))
      return json(response, 400, { error: 'invalid_grant' });
    const about = { aud: CLIENT_ID, nonce: grant.nonce, ...state.claims, ...state.spoiled };
    return json(response, 200, {
      token_type: 'Bearer',
      expires_in: 60,
      access_token: state.accessClaims === undefined ? randomUUID() : await provider.sign(key, state.accessClaims),
      id_token: await provider.sign(key, about),
    });
  };

  provider.answerBy((request, response) => {
    const url = new URL(request.url!, provider.issuer);
    const { issuer } = provider;
    if (url.pathname.endsWith('/authorize')) return void authorize(url, response);
    if (url.pathname.endsWith('/token')) return void token(request, response);
    if (url.pathname.endsWith('/keys')) return void json(response, 200, { keys: provider.published });
    if (url.pathname.endsWith('/end')) {
      ended.push(url.search);
      return void response.writeHead(302, { location: url.searchParams.get('post_logout_redirect_uri')! }).end();
    }
    return void json(response, 200, {
      issuer,
      jwks_uri: `${issuer}/keys`,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      end_session_endpoint: state.endAddress,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      code_challenge_methods_supported: ['S256'],
    });
  });
  return state;
}
