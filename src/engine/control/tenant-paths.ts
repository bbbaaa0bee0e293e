import fs from 'node:fs';
import path from 'node:path';
import type { Config } from '../config.ts';
import { assert, EngineError } from '../errors.ts';
import { DEFAULT_TENANT } from './control-database.ts';

/** Form of a tenant's id. Ids become file names, so an id that does not match never becomes part of a path. */
export const TENANT_ID = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** Returns the path of the file of a tenant. */
export function tenantFile(paths: Config['paths'], tenantId: string): string {
  if (tenantId === DEFAULT_TENANT) return paths.defaultTenant;
  assert(TENANT_ID.test(tenantId), 'a tenant id that is safe as a file name');
  return path.join(paths.tenants, `${tenantId}.sqlite`);
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
