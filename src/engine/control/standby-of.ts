import type { Config } from '../config.ts';
import type { TenantPlace } from '../store/postgres/tenant-database.ts';
import { databaseNameOf, placeOf } from './place-of.ts';

/**
 * Returns the standby (OM_DATABASE_READ_URL) from which a tenant may be read, and the tenant's name there; null if the
 * setting is left out, or if the tenant lives in another database than OM_DATABASE_URL, of which no standby is known.
 */
export function standbyOf(config: Config, path: string): TenantPlace | null {
  const { OM_DATABASE_READ_URL: standby } = config;
  if (standby === undefined || databaseNameOf(config, path) !== null) return null;
  return { ...placeOf(config, path)!, database: standby };
}
