import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose';

/** A pair of keys that the provider signs with. */
export interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly publicJwk: JWK;
}

/** Claims of a token; a test may give wrong types. A claim that is undefined is left out. */
export type Claims = Readonly<Record<string, unknown>>;

export interface IdentityProvider extends AsyncDisposable {
  readonly issuer: string;
  /** Public keys that the provider publishes; a test may change the list. */
  readonly published: JWK[];
  /** Returns how often its keys were requested. */
  readonly asked: () => number;
  /** Signs a token for `AUDIENCE` that is valid for five minutes; `claims` replace the usual claims. */
  sign(key: SigningKey, claims?: Claims, header?: object): Promise<string>;
  /** Lets this handler answer every request instead of sending keys; undefined ends that. */
  answerBy(handler: http.RequestListener | undefined): void;
  /** Stops listening, and closes all connections. */
  stop(): Promise<void>;
  /** Listens again at the same port. */
  start(): Promise<void>;
}

export const AUDIENCE = 'https://memory.example.org';

export async function makeKey(alg: string, kid = `key-${alg}`): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

/**
 * Starts a real OpenID provider on a free port of this machine, with the parts that a resource server uses (metadata,
 * keys and signed tokens).
 */
export async function startIdentityProvider(keys: readonly SigningKey[]): Promise<IdentityProvider> {
  const published = keys.map(({ publicJwk }) => publicJwk);
  let asked = 0;
  let handler: http.RequestListener | undefined;
  const server = http.createServer((request, response) => {
    if (request.url === '/realm/keys') asked++;
    if (handler !== undefined) return handler(request, response);
    const body = {
      '/realm/.well-known/openid-configuration': { issuer, jwks_uri: `${issuer}/keys` },
      '/realm/keys': { keys: published },
    }[request.url ?? ''];
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  });
  const start = async (port: number) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  const stop = async () => {
    if (!server.listening) return;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  await start(0);
  const { port } = server.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}/realm`;
  return {
    issuer,
    published,
    asked: () => asked,
    async sign({ kid, alg, privateKey }, claims = {}, header = {}) {
      const now = Math.floor(Date.now() / 1000);
      const usual = { iss: issuer, aud: AUDIENCE, sub: 'canary-subject', exp: now + 300, iat: now };
      const defined = Object.entries({ ...usual, ...claims }).filter(([, value]) => value !== undefined);
      return new SignJWT(Object.fromEntries(defined)).setProtectedHeader({ alg, kid, ...header }).sign(privateKey);
    },
    answerBy: (next) => void (handler = next),
    stop,
    start: () => start(port),
    [Symbol.asyncDispose]: stop,
  };
}
