import type { JWTVerifyGetKey } from 'jose';
import { isTamperProofUrl } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import { boundedFetch } from './bounded-fetch.ts';

/** Time limit for reading the identity provider's configuration and keys together (ms). */
const FETCH_MS = 5_000;
/** Greatest size of a reply of the identity provider (bytes). Sets of keys have some kilobytes. */
const MAX_BYTES = 256 * 1024;
/** Age of the cached keys (ms) from which they are read again in the background, while requests still use them. */
const FRESH_MS = 10 * 60_000;
/**
 * Age of the cached keys (ms) from which a request waits until they have been read again, so that a key which the
 * provider has withdrawn is not accepted for long. If they cannot be read, the old ones are used.
 */
const STALE_MS = 60 * 60_000;
/** Least time between two reads of the keys (ms), so that callers with invented key ids cannot cause more requests. */
const COOLDOWN_MS = 30_000;
/**
 * Least time between two reads of the keys while none is known (ms). It is short, since no token can be checked until
 * then.
 */
const FIRST_COOLDOWN_MS = 1_000;

export interface ProviderKeysOptions {
  readonly issuer: string;
  /** URL of the provider's public keys (JWKS); undefined to use the one in the issuer's configuration. */
  readonly jwksUrl: string | undefined;
  readonly logger: Logger;
  /** Returns the monotonic time (ms); `performance.now` by default. */
  readonly now?: () => number;
}

/**
 * Creates a cache of the public keys of an identity provider, and starts to read them in the background. Known keys
 * stay in use while the provider does not answer. For an unknown key id the keys are read again, unless a read began
 * less than 30 s ago.
 * @returns a function that finds the key of a token. It waits up to 5 s for a read if no keys are known, if they are an
 *   hour old, or for an unknown key id. It throws EngineError `unavailable` if no keys could be read yet, and errors of
 *   `jose` if no key fits
 */
export async function createProviderKeys({
  issuer,
  jwksUrl,
  logger,
  now = () => performance.now(),
}: ProviderKeysOptions): Promise<JWTVerifyGetKey> {
  const { createLocalJWKSet, errors } = await import('jose');
  let known: JWTVerifyGetKey | undefined;
  let readAt = -Infinity;
  let askedAt = -Infinity;
  let asking: Promise<void> | undefined;

  async function ask(): Promise<void> {
    askedAt = now();
    try {
      known = createLocalJWKSet((await fetchKeys({ issuer, jwksUrl })) as Parameters<typeof createLocalJWKSet>[0]);
      readAt = now();
    } catch (error) {
      logger.warn({ reason: reasonOf(error), areKeysKnown: known !== undefined }, 'identity_provider_unavailable');
    } finally {
      asking = undefined;
    }
  }

  /**
   * Reads the provider's keys, unless the provider was asked less than a cooldown ago. If a read of the keys is already
   * running, it waits for that read. It never rejects.
   */
  async function askIfDue(): Promise<void> {
    const cooldownMs = known === undefined ? FIRST_COOLDOWN_MS : COOLDOWN_MS;
    if (asking === undefined && now() - askedAt >= cooldownMs) asking = ask();
    await asking;
  }

  void askIfDue();
  return async (header, token) => {
    const ageMs = now() - readAt;
    if (ageMs >= STALE_MS) await askIfDue();
    else if (ageMs >= FRESH_MS) void askIfDue();
    if (known === undefined) {
      throw new EngineError('unavailable', 'the identity provider does not answer, so no token can be checked', {
        retryAfterMs: FIRST_COOLDOWN_MS,
      });
    }
    try {
      return await known(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await askIfDue();
      return known(header, token);
    }
  };
}

/**
 * Reads the provider's set of keys. Its content is not checked here, but by `jose`.
 * @throws Error if the provider does not answer, or if its configuration names another issuer or no https URL of keys
 */
async function fetchKeys({ issuer, jwksUrl }: Pick<ProviderKeysOptions, 'issuer' | 'jwksUrl'>): Promise<unknown> {
  const signal = AbortSignal.timeout(FETCH_MS);
  if (jwksUrl !== undefined) return fetchJson(jwksUrl, signal);
  const found = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, signal);
  const { issuer: named, jwks_uri: url } = (found ?? {}) as Readonly<Record<string, unknown>>;
  if (named !== issuer) throw new Error('its configuration names another issuer than OM_OIDC_ISSUER');
  if (typeof url !== 'string' || !isTamperProofUrl(url)) throw new Error('its jwks_uri is no https URL');
  return fetchJson(url, signal);
}

const fetchBounded = boundedFetch({ maxBytes: MAX_BYTES, refused: (what) => new Error(`its reply ${what}`) });

async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetchBounded(url, { headers: { accept: 'application/json' }, signal });
  if (!response.ok) throw new Error(`it answered with the status ${response.status}`);
  // The error of a malformed reply quotes it, and this message is logged.
  return response.json().catch(() => Promise.reject(new Error('its reply is no JSON')));
}

/** Returns the reason why the keys could not be read: the code of a failed connection, else the error's message. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error;
  const { code } = (cause ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' ? code : message;
}
