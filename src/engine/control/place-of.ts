import fs from 'node:fs';
import type { Config } from '../config.ts';
import { assert } from '../errors.ts';
import type { TenantPlace } from '../store/postgres/tenant-database.ts';
import { tenantOf } from './data-keys.ts';

/**
 * Returns the database server and the name there of the tenant that belongs to a file's path; null if OM_DATABASE_URL
 * is not set, so that the tenant lives in that file.
 */
export function placeOf({ OM_DATABASE_URL: database, paths }: Config, path: string): TenantPlace | null {
  if (database === undefined) return null;
  const tenant = tenantOf(paths, path);
  assert(tenant !== undefined, 'the path of a tenant');
  return { database, tenant };
}

/**
 * Whether a tenant may have any data. A tenant that was never used has no file, and reading must not make one. With
 * OM_DATABASE_URL it is always true.
 */
export function mayHoldRows({ OM_DATABASE_URL: database }: Config, path: string): boolean {
  return database !== undefined || fs.existsSync(path);
}
