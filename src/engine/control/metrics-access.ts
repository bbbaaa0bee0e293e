import { createHash, timingSafeEqual } from 'node:crypto';
import type { Config } from '../config.ts';
import { DEFAULT_TENANT, type ControlDatabase } from './control-database.ts';

/** Verdict on a caller that requests metrics and sent a key. */
export type MetricsVerdict =
  | 'admitted'
  /** The key is not known or was revoked. */
  | 'unknown'
  /** The key is valid, but it belongs to another tenant or its role is not `admin`. */
  | 'forbidden';

/**
 * Decides whether a caller may read metrics on a server that requires a key for them. The holder of `OM_METRICS_KEY`
 * and an admin of the default tenant may. Metrics count what all tenants do, so a key of another tenant or of a lesser
 * role must not read them.
 * @param secret the key as the request carries it
 */
export function judgeMetricsReader(
  secret: string,
  { control, config }: { readonly control: ControlDatabase; readonly config: Config },
): MetricsVerdict {
  const metricsKey = config.OM_METRICS_KEY;
  const isMetricsKey = timingSafeEqual(digestOf(secret), digestOf(metricsKey ?? ''));
  if (metricsKey !== undefined && isMetricsKey) return 'admitted';
  const principal = control.authenticate(secret);
  if (principal === undefined) return 'unknown';
  return principal.tenantId === DEFAULT_TENANT && principal.role === 'admin' ? 'admitted' : 'forbidden';
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret, 'utf8').digest();
}
