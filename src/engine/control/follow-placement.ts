import type { Config } from '../config.ts';
import type { Logger } from '../ports.ts';
import type { TenantPool } from '../tenant-file/tenant-pool.ts';
import type { ControlDatabase } from './control-database.ts';
import { addressOf, databaseNameOf, mayHoldRows } from './place-of.ts';

/** The tenants that a worker looks after, and the pool of the open ones. */
export interface FollowedTenants {
  /**
   * The pool of the worker's open tenants. With OM_DATABASE_URL its `openPaths` first closes tenants that have moved to
   * another database or move just now.
   */
  readonly pool: TenantPool;
  /**
   * Lists the paths of the tenants that have a file, or with OM_DATABASE_URL of all tenants. A tenant that moves to
   * another database is left out, and so is one whose database the settings do not name, which is logged once for each
   * database.
   */
  listPaths(): string[];
}

/** Creates the list of a worker's tenants, and the pool that follows their placements. */
export function followPlacements({
  config,
  control,
  pool,
  logger,
}: {
  readonly config: Config;
  readonly control: ControlDatabase;
  readonly pool: TenantPool;
  readonly logger: Logger;
}): FollowedTenants {
  // A tenant that was never used has no file, and gets none by being looked at.
  const listAll = () =>
    control
      .listTenants()
      .flatMap(({ id }) => control.findTenantPath(id) ?? [])
      .filter((path) => mayHoldRows(config, path));
  if (config.OM_DATABASE_URL === undefined) return { pool, listPaths: listAll };
  const unknown = new Set<string>();
  const isKnown = (path: string) => {
    const name = databaseNameOf(config, path);
    if (addressOf(config, name) !== undefined) return true;
    if (!unknown.has(name!)) logger.warn({ database: name, until: 'OM_DATABASES names it' }, 'database_unknown');
    unknown.add(name!);
    return false;
  };
  return {
    pool: {
      ...pool,
      openPaths() {
        for (const path of pool.openPaths()) if (!control.isSettledPath(path)) pool.evict(path);
        return pool.openPaths();
      },
    },
    listPaths: () => listAll().filter((path) => control.isSettledPath(path) && isKnown(path)),
  };
}
