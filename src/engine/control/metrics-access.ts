import { createHash, timingSafeEqual } from 'node:crypto';
import type { Config } from '../config.ts';
import { DEFAULT_TENANT, type ControlDatabase } from './control-database.ts';
import type { ChosenKey, GuessLimit } from './guess-limit.ts';

/** Verdict on a caller that requests metrics and sent a key. */
export type MetricsVerdict =
  | 'admitted'
  /**
   * The key is not known, was revoked or has expired, or it was sent during a pause and may be a guess (`GuessLimit`).
   */
  | 'unknown'
  /** The key is valid, but it belongs to another tenant or its role is not `admin`. */
  | 'forbidden';

/**
 * Decides whether a caller may read metrics on a server that requires a key for them. The holder of `OM_METRICS_KEY`
 * and an admin of the default tenant may. Metrics count what all tenants do, so a key of another tenant or of a lesser
 * role must not read them. It counts no wrong key: the caller does (`GuessLimit.noteWrong`).
 * @param caller the key as the request carries it, and the address that the request comes from
 */
export function judgeMetricsReader(
  { secret, address }: { readonly secret: string; readonly address: string },
  {
    control,
    config,
    guesses,
  }: { readonly control: ControlDatabase; readonly config: Config; readonly guesses: GuessLimit },
): MetricsVerdict {
  const ofChosen = (key: ChosenKey) => (guesses.admitsRightKey(address, key) ? 'admitted' : 'unknown');
  const metricsKey = config.OM_METRICS_KEY;
  const isMetricsKey = timingSafeEqual(digestOf(secret), digestOf(metricsKey ?? ''));
  if (metricsKey !== undefined && isMetricsKey) return ofChosen('OM_METRICS_KEY');
  const principal = control.authenticate(secret);
  if (principal === undefined) return 'unknown';
  if (principal.keyId === 'environment') return ofChosen('OM_API_KEY');
  return principal.tenantId === DEFAULT_TENANT && principal.role === 'admin' ? 'admitted' : 'forbidden';
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret, 'utf8').digest();
}
