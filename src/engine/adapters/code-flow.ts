import type { Configuration } from 'openid-client';
import { type Config, isTamperProofUrl } from '../config.ts';
import { assert, EngineError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import { boundedFetch } from './bounded-fetch.ts';

/** Greatest size of a reply of the identity provider (bytes). */
const MAX_BYTES = 256 * 1024;
/** Time limit for one request to the identity provider (s). */
const TIMEOUT_S = 10;

/**
 * Secrets of one sign-in (for PKCE, state and nonce), which the browser keeps while its user is at the identity
 * provider.
 */
export interface CodeFlowSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** What the identity provider states about a person who has signed in. */
interface SignedIn {
  readonly subject: string;
  /** Claims of the ID token, which the provider issued for this client. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** Access token. The provider issues it for the API or another service, and it need not be a JWT. */
  readonly accessToken: string;
}

/** Signs people in at an identity provider by the authorization code flow with PKCE, state and nonce. */
export interface CodeFlow {
  /**
   * Starts a sign-in.
   * @param redirectUrl address to which the provider sends the browser afterwards; it must be registered at the
   *   provider
   * @returns the address at the provider that the browser must open, and the secrets for `finish`
   * @throws EngineError `unavailable` if the provider does not answer, or its configuration cannot be used
   */
  begin(redirectUrl: string): Promise<{ readonly url: URL; readonly secrets: CodeFlowSecrets }>;
  /**
   * Finishes a sign-in: exchanges the authorization code that the browser brought back from the provider.
   * @param currentUrl address at which the browser came back, with its query
   * @param secrets secrets that `begin` returned
   * @throws EngineError `unauthenticated` if the provider refused, or its answer does not fit the secrets;
   *   `unavailable` if it does not answer, fails, or its configuration cannot be used
   */
  finish(currentUrl: URL, secrets: CodeFlowSecrets): Promise<SignedIn>;
  /**
   * Returns the address at which the provider signs the user out of its own session; null if it has no such address
   * with https or on a loopback host.
   * @param returnUrl address to which the provider sends the browser afterwards
   * @throws EngineError `unavailable` if the provider does not answer, or its configuration cannot be used
   */
  endUrl(returnUrl: string): Promise<URL | null>;
}

/**
 * Creates the sign-in flow for the client `OM_OIDC_CLIENT_ID`. The first call of any of its functions loads
 * `openid-client` and reads the provider's configuration.
 */
export function createCodeFlow({ config, logger }: { readonly config: Config; readonly logger: Logger }): CodeFlow {
  let known: Promise<Configuration> | undefined;

  /**
   * Returns the provider's configuration, which the first call reads and caches. After a failure, the next call reads
   * it again.
   */
  async function configuration(): Promise<Configuration> {
    known ??= discover(config);
    try {
      return await known;
    } catch (error) {
      known = undefined;
      throw unavailable(error);
    }
  }

  function unavailable(error: unknown): EngineError {
    logger.warn({ reason: codeOf(error) }, 'identity_provider_unavailable');
    return new EngineError('unavailable', 'the identity provider does not answer', { retryAfterMs: 1_000 });
  }

  return {
    async begin(redirectUrl) {
      const [provider, client] = [await configuration(), await import('openid-client')];
      const secrets = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
      };
      const url = client.buildAuthorizationUrl(provider, {
        redirect_uri: redirectUrl,
        scope: config.OM_OIDC_SCOPE,
        state: secrets.state,
        nonce: secrets.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(secrets.verifier),
        code_challenge_method: 'S256',
      });
      return { url, secrets };
    },

    async finish(currentUrl, { state, nonce, verifier }) {
      const [provider, client] = [await configuration(), await import('openid-client')];
      try {
        const tokens = await client.authorizationCodeGrant(provider, currentUrl, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const claims = tokens.claims()!;
        return { subject: claims.sub, claims, accessToken: tokens.access_token };
      } catch (error) {
        if (isNoAnswer(error)) throw unavailable(error);
        // The errors of the library hold codes and claims, so none of them becomes a cause.
        logger.warn({ reason: codeOf(error) }, 'sign_in_refused');
        throw new EngineError('unauthenticated', 'the identity provider did not sign you in');
      }
    },

    async endUrl(returnUrl) {
      const [provider, client] = [await configuration(), await import('openid-client')];
      const { end_session_endpoint: endpoint } = provider.serverMetadata();
      // A page in clear text could show the user anything as the provider's.
      if (endpoint === undefined || !isTamperProofUrl(endpoint)) return null;
      return client.buildEndSessionUrl(provider, { post_logout_redirect_uri: returnUrl });
    },
  };
}

/**
 * Reads the configuration of the provider.
 * @throws Error if the provider does not answer, or if its authorization or token endpoint has neither https, which
 *   protects against tampering, nor a loopback host
 */
async function discover(config: Config): Promise<Configuration> {
  const { OM_OIDC_ISSUER: issuer, OM_OIDC_CLIENT_ID: clientId, OM_OIDC_CLIENT_SECRET: secret } = config;
  assert(issuer !== undefined && clientId !== undefined, 'a sign-in has an issuer and a client');
  const client = await import('openid-client');
  const isPlain = issuer.startsWith('http:');
  const found = await client.discovery(
    new URL(issuer),
    clientId,
    undefined,
    secret === undefined ? client.None() : client.ClientSecretBasic(secret),
    {
      timeout: TIMEOUT_S,
      // The settings allow http only for a loopback host.
      ...(isPlain ? { execute: [client.allowInsecureRequests] } : {}),
      [client.customFetch]: boundedFetch({
        maxBytes: MAX_BYTES,
        refused: (what) => new Error(`its reply ${what}`),
      }) as never,
    },
  );
  const { authorization_endpoint: asked, token_endpoint: token } = found.serverMetadata();
  if (![asked, token].every((url) => url !== undefined && isTamperProofUrl(url)))
    throw new Error('its authorization_endpoint or token_endpoint is no https URL');
  return found;
}

/** Tells whether an error says that the provider could not be reached, took too long, or answered 5xx. */
function isNoAnswer(error: unknown): boolean {
  for (let at = error; typeof at === 'object' && at !== null; at = (at as { cause?: unknown }).cause) {
    const { code, status } = at as { code?: unknown; status?: unknown };
    // `fetch` rejects with a TypeError.
    if (at instanceof TypeError || code === 'OAUTH_TIMEOUT' || (typeof status === 'number' && status >= 500))
      return true;
  }
  return false;
}

/**
 * Returns the code of an error, or `unknown`. The error's message is not used, since it may contain secrets. A code of
 * another form than codes have is not used either: the code of a refusal comes from the address of the request, so that
 * anybody could write any text to the log.
 */
function codeOf(error: unknown): string {
  const { code, error: refusal, cause } = error as { code?: unknown; error?: unknown; cause?: { code?: unknown } };
  const words = [refusal, code, cause?.code].filter((word) => typeof word === 'string');
  return words.find((word) => /^\w{1,64}$/.test(word)) ?? 'unknown';
}
