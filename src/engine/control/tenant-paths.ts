import fs from 'node:fs';
import path from 'node:path';
import { HOME_DATABASE, type Config } from '../config.ts';
import { assert, EngineError } from '../errors.ts';
import { DEFAULT_TENANT } from './control-database.ts';

/** Form of a tenant's id. Ids become file names, so an id that does not match never becomes part of a path. */
export const TENANT_ID = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** The database in which a tenant is, and the number of this placement. */
export interface Placement {
  /** Name of the database in OM_DATABASES; null for the one of OM_DATABASE_URL, and for a tenant in a file. */
  readonly database: string | null;
  /** Number of the placement, which grows with each move; 0 for a tenant that has never been placed. */
  readonly number: number;
}

/** The placement of a tenant that was never placed. */
export const UNPLACED: Placement = { database: null, number: 0 };

/**
 * Returns the path of the file of a tenant. A tenant that was placed in a database has a path at which no file exists.
 * It names the database and the number of the placement, so that whatever is kept by a tenant's path (connections,
 * indexes, queued groups) belongs to one placement, and threads need not look placements up. The default tenant has the
 * path `paths.defaultTenant` with every placement.
 * @throws EngineError `internal` for an id that `TENANT_ID` does not match
 */
export function tenantFile(
  paths: Config['paths'],
  tenantId: string,
  { database, number }: Placement = UNPLACED,
): string {
  if (tenantId === DEFAULT_TENANT) return paths.defaultTenant;
  assert(TENANT_ID.test(tenantId), 'a tenant id that is safe as a file name');
  const folder = number === 0 ? [] : [`@${database ?? HOME_DATABASE}.${number}`];
  return path.join(paths.tenants, ...folder, `${tenantId}.sqlite`);
}

/** Returns the tenant and the placement of a path that `tenantFile` made; undefined for any other path. */
export function tenantAtPath(
  paths: Config['paths'],
  file: string,
): { readonly tenant: string; readonly placement: Placement } | undefined {
  if (file === paths.defaultTenant) return { tenant: DEFAULT_TENANT, placement: UNPLACED };
  const { dir, base } = path.parse(file);
  const tenant = /^([a-z0-9][a-z0-9_-]{0,63})\.sqlite$/.exec(base)?.[1];
  if (tenant === undefined) return undefined;
  if (dir === paths.tenants) return { tenant, placement: UNPLACED };
  if (path.dirname(dir) !== paths.tenants) return undefined;
  const [, name, number] = /^@([a-z0-9_-]+)\.(\d{1,15})$/.exec(path.basename(dir)) ?? [];
  if (name === undefined) return undefined;
  return { tenant, placement: { database: name === HOME_DATABASE ? null : name, number: Number(number) } };
}

/** Returns the folder in which `cairn move` collects the files of a move into a data folder until it is complete. */
export function stagingFolder({ lock }: Config['paths']): string {
  return lock.replace(/\.lock$/, '.moving');
}

/**
 * Throws EngineError `conflict` if a move into this data folder was interrupted, so that a part of the data is missing.
 */
export function requireWholeFolder(paths: Config['paths']): void {
  const folder = stagingFolder(paths);
  if (!fs.existsSync(folder)) return;
  throw new EngineError(
    'conflict',
    `a \`cairn move\` into ${path.dirname(folder)} is not complete: ` +
      'run it again, with the same OM_DATABASE_URL and --to',
  );
}
