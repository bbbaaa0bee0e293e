/**
 * Secrets of browser sessions. A secret is random bytes and the beginning of their HMAC, by a key that all processes
 * find in the control database. So a process tells an invented secret from one that was made here without a look into
 * the database, which in PostgreSQL is a round trip. The signature gives no access: only the row of a session does.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { EngineError } from '../errors.ts';
import type { AccessCache } from './access-cache.ts';
import { DEFAULT_TENANT } from './control-database.ts';
import type { ControlFile } from './control-file.ts';
import { createLookupAllowance } from './lookup-allowance.ts';

/** Name of the setting of the default tenant that holds the key by which secrets are signed. */
const SIGNING_KEY = 'session_key';
/**
 * Number of random bytes of a secret. With those of its signature it is a multiple of three, so that each secret has
 * one form in base64url only.
 */
const RANDOM_BYTES = 32;
/** Number of bytes of the signature at the end of a secret. */
const SIGNATURE_BYTES = 16;
/** Form of a session's secret. */
const SECRET = /^[\w-]{64}$/;

export interface SessionSecrets {
  /** Makes a secret. If the control database has no key to sign with, one is made and stored. */
  make(): string;
  /** Whether a text has the form of a secret. */
  hasForm(text: string): boolean;
  /**
   * Whether any process of this service made a secret, by its signature. The text must have the form of a secret.
   * @throws EngineError `unavailable` in PostgreSQL, if no signing key was found yet, and one was looked for 20 times
   *   within a second
   */
  wasMadeHere(secret: string): boolean;
}

export function createSessionSecrets(
  { statements, watched }: ControlFile,
  cache: Pick<AccessCache, 'getSetting' | 'makeSetting'>,
): SessionSecrets {
  const mayLookUp = createLookupAllowance();
  const knownKey = () => cache.getSetting(DEFAULT_TENANT, SIGNING_KEY);
  const readKey = () => statements.readSetting.get(DEFAULT_TENANT, SIGNING_KEY)?.value;

  /** Finds the signing key, or makes it; two processes that do so at once get the same one. */
  const keyToSign = () =>
    knownKey() ?? cache.makeSetting(DEFAULT_TENANT, SIGNING_KEY, randomBytes(32).toString('base64url'));

  /**
   * Finds the signing key, also if another process made it a moment ago; undefined if there is none.
   * @throws EngineError `unavailable` in PostgreSQL, if no key was found in memory and too many were looked up just now
   */
  function keyToCheck(): string | undefined {
    const known = knownKey();
    if (known !== undefined || watched === null) return known;
    if (mayLookUp()) return readKey();
    throw new EngineError('unavailable', 'too many unknown sessions came', { retryAfterMs: 1_000 });
  }

  return {
    make() {
      const random = randomBytes(RANDOM_BYTES);
      return Buffer.concat([random, signatureOf(random, keyToSign())]).toString('base64url');
    },
    hasForm: (text) => SECRET.test(text),
    wasMadeHere(secret) {
      const key = keyToCheck();
      if (key === undefined) return false;
      const bytes = Buffer.from(secret, 'base64url');
      return timingSafeEqual(signatureOf(bytes.subarray(0, RANDOM_BYTES), key), bytes.subarray(RANDOM_BYTES));
    },
  };
}

function signatureOf(random: Buffer, key: string): Buffer {
  return createHmac('sha256', key).update(random).digest().subarray(0, SIGNATURE_BYTES);
}
