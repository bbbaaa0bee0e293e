import type { JWTVerifyGetKey } from 'jose';
import { isTamperProofUrl } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import { boundedFetch } from './bounded-fetch.ts';

/** Time limit for asking the identity provider, its configuration and its keys together (ms). */
const FETCH_MS = 5_000;
/** Largest reply of the identity provider (bytes). Sets of keys have some kilobytes. */
const MAX_BYTES = 256 * 1024;
/** Age from which keys are asked for again in the background, while requests go on with what is known (ms). */
const FRESH_MS = 10 * 60_000;
/** Age from which a request waits for the answer, so that a key that was withdrawn is not used for long (ms). */
const STALE_MS = 60 * 60_000;
/** Shortest time between two questions (ms): whoever makes up key ids cannot make Cairn ask more often. */
const COOLDOWN_MS = 30_000;
/** The same while no key is known yet, as no token can be checked until then (ms). */
const FIRST_COOLDOWN_MS = 1_000;

export interface ProviderKeysOptions {
  readonly issuer: string;
  /** URL of the keys; undefined for the one that the issuer's configuration names. */
  readonly jwksUrl: string | undefined;
  readonly logger: Logger;
  /** Monotonic time (ms). */
  readonly now?: () => number;
}

/**
 * Keeps the public keys of an identity provider, and asks for them at once. Known keys stay in use while the provider
 * does not answer. An unknown key id makes it ask again, unless it asked less than `COOLDOWN_MS` ago.
 * @returns a function that finds the key of a token. It throws EngineError `unavailable` while no key was ever read,
 *   and errors of `jose` if none fits.
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

  /** Asks unless that was done a moment ago; a question under way is waited for. It never rejects. */
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

/** Reads the set of keys, whose form `jose` checks. */
async function fetchKeys({ issuer, jwksUrl }: Pick<ProviderKeysOptions, 'issuer' | 'jwksUrl'>): Promise<unknown> {
  const signal = AbortSignal.timeout(FETCH_MS);
  if (jwksUrl !== undefined) return fetchJson(jwksUrl, signal);
  const found = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, signal);
  const { issuer: named, jwks_uri: url } = (found ?? {}) as Readonly<Record<string, unknown>>;
  if (named !== issuer) throw new Error('its configuration names another issuer than OM_OIDC_ISSUER');
  if (typeof url !== 'string' || !isTamperProofUrl(url)) throw new Error('its jwks_uri is no https URL');
  return fetchJson(url, signal);
}

const fetchBounded = boundedFetch(MAX_BYTES, (what) => new Error(`its reply ${what}`));

async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetchBounded(url, { headers: { accept: 'application/json' }, signal });
  if (!response.ok) throw new Error(`it answered with the status ${response.status}`);
  return response.json();
}

/** Says why the provider could not be asked: of a failed connection its code, as `fetch failed` says nothing. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error;
  const { code } = (cause ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' ? code : message;
}
