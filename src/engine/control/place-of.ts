import fs from 'node:fs';
import type { Config } from '../config.ts';
import { assert, EngineError } from '../errors.ts';
import type { TenantPlace } from '../store/postgres/tenant-database.ts';
import { tenantAtPath } from './tenant-paths.ts';

/** The settings that say where tenants are. */
export type PlaceSettings = Pick<Config, 'OM_DATABASE_URL' | 'databases' | 'paths'>;

/**
 * Returns the database server and the name there of the tenant that belongs to a path; null if OM_DATABASE_URL is not
 * set, so that the tenant is the file at the path.
 * @throws EngineError `unavailable` if the path names a database that OM_DATABASES does not name
 */
export function placeOf(config: PlaceSettings, path: string): TenantPlace | null {
  if (config.OM_DATABASE_URL === undefined) return null;
  const { tenant, placement } = atPath(config, path);
  const { database: name, number } = placement;
  const database = addressOf(config, name);
  if (database === undefined) {
    throw new EngineError(
      'unavailable',
      `tenant ${tenant} is placed in the database ${name}, which OM_DATABASES of this process does not name`,
    );
  }
  return { database, tenant, name, placement: number };
}

/** Returns the name of the database in which the tenant of a path is; null for the one of OM_DATABASE_URL. */
export function databaseNameOf(config: PlaceSettings, path: string): string | null {
  return atPath(config, path).placement.database;
}

/**
 * Returns the address of a database; undefined if the settings do not name it.
 * @param name its name in OM_DATABASES; null for the one of OM_DATABASE_URL
 */
export function addressOf(config: PlaceSettings, name: string | null): string | undefined {
  if (name === null) return config.OM_DATABASE_URL;
  return Object.hasOwn(config.databases, name) ? config.databases[name] : undefined;
}

/**
 * Whether a tenant may have any data. A tenant that was never used has no file, and reading must not make one. With
 * OM_DATABASE_URL it is always true.
 */
export function mayHoldRows({ OM_DATABASE_URL: database }: Config, path: string): boolean {
  return database !== undefined || fs.existsSync(path);
}

function atPath({ paths }: PlaceSettings, path: string) {
  const found = tenantAtPath(paths, path);
  assert(found !== undefined, 'the path of a tenant');
  return found;
}
