import fs from 'node:fs';
import type { Config } from '../config.ts';
import { assert } from '../errors.ts';
import type { TenantPlace } from '../store/postgres/tenant-database.ts';
import { tenantOf } from './data-keys.ts';

/** Tells where the tenant lives whose file has, or would have, a path; null for the file. */
export function placeOf({ OM_DATABASE_URL: database, paths }: Config, path: string): TenantPlace | null {
  if (database === undefined) return null;
  const tenant = tenantOf(paths, path);
  assert(tenant !== undefined, 'the path of a tenant');
  return { database, tenant };
}

/** Whether a tenant may hold anything: one that was never used has no file, and gets none by being looked at. */
export function mayHoldRows({ OM_DATABASE_URL: database }: Config, path: string): boolean {
  return database !== undefined || fs.existsSync(path);
}
