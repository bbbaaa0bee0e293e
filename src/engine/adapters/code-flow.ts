import type { Configuration } from 'openid-client';
import { type Config, isTamperProofUrl } from '../config.ts';
import { assert, EngineError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import { boundedFetch } from './bounded-fetch.ts';

/** Largest reply of the identity provider (bytes). */
const MAX_BYTES = 256 * 1024;
/** Time limit for one request to the identity provider (s). */
const TIMEOUT_S = 10;

/** What a browser keeps between leaving for the identity provider and coming back. */
export interface CodeFlowSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** What the identity provider says about somebody who signed in there. */
interface SignedIn {
  readonly subject: string;
  /** Claims of the ID token, which is for this client. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** Made for the audience of the API, or for nobody here; it may be no JWT. */
  readonly accessToken: string;
}

/** Signing in at an identity provider by the authorization code flow with PKCE, state and nonce. */
export interface CodeFlow {
  /**
   * Begins to sign in.
   * @param redirectUrl where the provider sends the browser afterwards; the provider must know it
   * @returns the address at the provider
   * @throws EngineError `unavailable` while the provider does not answer
   */
  begin(redirectUrl: string): Promise<{ readonly url: URL; readonly secrets: CodeFlowSecrets }>;
  /**
   * Exchanges the code that the provider sent the browser back with.
   * @param currentUrl address at which the browser came back, with its query
   * @throws EngineError `unauthenticated` if the provider refused, or its answer is not what was asked for;
   *   `unavailable` while it does not answer
   */
  finish(currentUrl: URL, secrets: CodeFlowSecrets): Promise<SignedIn>;
  /** Address at which the provider ends its own session; null if it has none. @throws EngineError `unavailable` */
  endUrl(returnUrl: string): Promise<URL | null>;
}

/** Makes the code flow of `OM_OIDC_CLIENT_ID`. It loads `openid-client` and asks the provider at its first use. */
export function createCodeFlow({ config, logger }: { readonly config: Config; readonly logger: Logger }): CodeFlow {
  let known: Promise<Configuration> | undefined;

  /** The provider's configuration is kept once it was read; a failure is tried again by the next one who signs in. */
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
        // The errors of the library hold codes and claims, so none of them becomes a cause.
        logger.warn({ reason: codeOf(error) }, 'sign_in_refused');
        throw new EngineError('unauthenticated', 'the identity provider did not sign you in');
      }
    },

    async endUrl(returnUrl) {
      const [provider, client] = [await configuration(), await import('openid-client')];
      if (provider.serverMetadata().end_session_endpoint === undefined) return null;
      return client.buildEndSessionUrl(provider, { post_logout_redirect_uri: returnUrl });
    },
  };
}

/** Reads the configuration of the provider. Its endpoints must be as safe as the issuer itself. */
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
      // A setting allows http for a loopback host alone.
      ...(isPlain ? { execute: [client.allowInsecureRequests] } : {}),
      [client.customFetch]: boundedFetch(MAX_BYTES, (what) => new Error(`its reply ${what}`)) as never,
    },
  );
  const { authorization_endpoint: asked, token_endpoint: token } = found.serverMetadata();
  if (![asked, token].every((url) => url !== undefined && isTamperProofUrl(url)))
    throw new Error('its authorization_endpoint or token_endpoint is no https URL');
  return found;
}

/** Names an error by its code alone. */
function codeOf(error: unknown): string {
  const { code, error: refusal, cause } = error as { code?: unknown; error?: unknown; cause?: { code?: unknown } };
  return [refusal, code, cause?.code].find((word) => typeof word === 'string') ?? 'unknown';
}
