import type { JWTPayload, JWTVerifyOptions } from 'jose';
import type { Config } from '../config.ts';
import { assert, EngineError, isEngineError } from '../errors.ts';
import type { Clock, Logger } from '../ports.ts';
import { createProviderKeys } from './provider-keys.ts';

/**
 * Signature algorithms that are accepted. All are asymmetric: with a symmetric algorithm, the provider's public key
 * could be used as the secret.
 */
const ALGORITHMS = ['RS', 'PS', 'ES'].flatMap((kind) => [`${kind}256`, `${kind}384`, `${kind}512`]);
ALGORITHMS.push('EdDSA', 'Ed25519');
/** Difference between the clocks of the provider and this machine that is tolerated (s). */
const CLOCK_TOLERANCE_S = 60;

/** The content of a token whose signature, issuer, audience and times were checked. */
export interface VerifiedToken {
  /** Id of the person or program for whom the token was issued, unique at the issuer (claim `sub`). */
  readonly subject: string;
  /** Time from which the token is refused, Unix ms: its expiry plus 60 s (`CLOCK_TOLERANCE_S`). */
  readonly expiresAt: number;
  /** All claims of the token. */
  readonly claims: Readonly<Record<string, unknown>>;
}

export interface TokenVerifier {
  /**
   * Checks a token. No error message contains any part of the token.
   * @returns undefined for a text that is no well-formed token, and for a token whose signature does not fit the
   *   issuer's keys or has another algorithm
   * @throws EngineError `unauthenticated` for a token that has expired, is not valid yet, is of another issuer or for
   *   another audience, lacks `exp` or `sub`, or names an unknown key; `unavailable` if the issuer's keys have never
   *   been read
   */
  verify(token: string): Promise<VerifiedToken | undefined>;
}

/**
 * Tells whether a credential has the form of a signed token: three parts in base64url, the first of which begins like a
 * JSON object.
 */
export function isToken(secret: string): boolean {
  return /^eyJ[\w-]*\.[\w-]*\.[\w-]*$/.test(secret);
}

/**
 * Creates the verifier for tokens of `OM_OIDC_ISSUER`. It loads `jose` and starts to read the issuer's keys in the
 * background, so that a server can start while the issuer is down.
 */
export async function createTokenVerifier({
  config,
  clock,
  logger,
}: {
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
}): Promise<TokenVerifier> {
  const { OM_OIDC_ISSUER: issuer, OM_OIDC_AUDIENCE: audience, OM_OIDC_JWKS_URL: jwksUrl } = config;
  assert(issuer !== undefined && audience !== undefined, 'tokens have an issuer and an audience');
  const { errors, jwtVerify } = await import('jose');
  const findKey = await createProviderKeys({ issuer, jwksUrl, logger });
  const options = {
    issuer,
    audience,
    algorithms: ALGORITHMS,
    clockTolerance: CLOCK_TOLERANCE_S,
    requiredClaims: ['exp', 'sub'],
  } satisfies JWTVerifyOptions;

  /**
   * Returns the claims of a token. If it names no key and several of the issuer's have its algorithm, each is tried.
   * Throws errors of `jose`, and what `findKey` throws.
   */
  async function payloadOf(token: string): Promise<JWTPayload> {
    const present = { ...options, currentDate: new Date(clock.now()) };
    try {
      return (await jwtVerify(token, findKey, present)).payload;
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      for await (const key of error) {
        try {
          return (await jwtVerify(token, key, present)).payload;
        } catch (failure) {
          if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
        }
      }
      throw new errors.JWSSignatureVerificationFailed();
    }
  }

  return {
    async verify(token) {
      try {
        return verifiedToken(await payloadOf(token));
      } catch (error) {
        // The errors of jose hold the claims, so none of them becomes a cause.
        if (isEngineError(error)) throw error;
        if (error instanceof errors.JWTExpired) throw refusal('this token has expired');
        if (error instanceof errors.JWTClaimValidationFailed) throw refusal(WRONG_CLAIMS[error.claim] ?? WRONG_CLAIM);
        if (error instanceof errors.JWKSNoMatchingKey) throw refusal('this token was signed with an unknown key');
        return undefined;
      }
    },
  };
}

const WRONG_CLAIM = 'this token has a claim of a wrong type, or lacks one of iss, aud, sub and exp';
const WRONG_CLAIMS: Readonly<Record<string, string>> = {
  iss: 'this token is of another issuer',
  aud: 'this token is for another audience',
  nbf: 'this token is not valid yet',
};

function verifiedToken(claims: Readonly<Record<string, unknown>>): VerifiedToken {
  const { sub: subject, exp } = claims;
  if (typeof subject !== 'string' || subject === '' || !Number.isFinite(exp)) throw refusal(WRONG_CLAIM);
  return { subject, expiresAt: ((exp as number) + CLOCK_TOLERANCE_S) * 1000, claims };
}

function refusal(message: string): EngineError {
  return new EngineError('unauthenticated', message);
}
