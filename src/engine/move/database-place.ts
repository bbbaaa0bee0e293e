/** A database of PostgreSQL, from which or into which tenants are moved. */

import { join } from 'node:path';
import type { Config } from '../config.ts';
import { openControlConnection, type ControlConnection } from '../control/control-connection.ts';
import type { ControlFile } from '../control/control-file.ts';
import { listPresentTenants } from '../control/moved-control.ts';
import { openPostgresControl } from '../control/open-postgres-control.ts';
import { stagingFolder } from '../control/tenant-paths.ts';
import { EngineError } from '../errors.ts';
import { isMovingName, movingName, openMovedTenants, type MovedTenants } from '../store/postgres/moved-tenant.ts';
import { openTenantStore } from '../store/postgres/tenant-database.ts';
import { findUploadPart, putUploadPart } from '../store/upload-parts.ts';
import type { MovedTenant, MoveSource, MoveTarget } from './places.ts';

interface Opened {
  readonly database: string;
  readonly config: Config;
  readonly connection: ControlConnection;
  readonly control: ControlFile;
  readonly tenants: MovedTenants;
  close(): void;
}

/** Opens a database and locks it against services (`takeAlone`). Throws as `openDatabaseSource`. */
function open(database: string, config: Config): Opened {
  const connection = openControlConnection(database);
  const opened: { close(): void }[] = [connection];
  const close = () =>
    opened
      .splice(0)
      .reverse()
      .forEach((part) => part.close());
  try {
    connection.takeAlone();
    const control = openPostgresControl(database);
    opened.push(control);
    const tenants = openMovedTenants(database);
    opened.push(tenants);
    return { database, config, connection, control, tenants, close };
  } catch (error) {
    close();
    throw error;
  }
}

/** Returns the address of a database as messages show it: without its password and its options. */
export function nameOfDatabase(database: string): string {
  const url = new URL(database);
  url.password = '';
  url.search = '';
  return url.href;
}

/**
 * Opens a database from which tenants are moved. While it is open, no service can use the database. The caller closes
 * it.
 * @throws EngineError `conflict` while other processes use it; `unavailable` if it does not answer
 */
export function openDatabaseSource(database: string, config: Config): MoveSource {
  const opened = open(database, config);
  return {
    name: nameOfDatabase(database),
    control: opened.control,
    open: (tenant) => (opened.tenants.has(tenant) ? openTenantOf(opened, tenant, tenant) : undefined),
    close: opened.close,
  };
}

/**
 * Opens a database into which tenants are moved, and makes its schemas if they are missing.
 * @param sourceKey hash of the source's name. Until the move is complete, tenants have temporary names that begin with
 *   it, which tells them from the tenants of another source
 * @throws EngineError as `openDatabaseSource`
 */
export function openDatabaseTarget(database: string, sourceKey: string, config: Config): MoveTarget {
  const opened = open(database, config);
  const { tenants, control, connection } = opened;
  const prefix = movingName(sourceKey, '');
  const begun = () => tenants.names().filter((name) => name.startsWith(prefix));
  return {
    name: nameOfDatabase(database),
    requireRoomFor(tenant) {
      const there = new Set([...tenants.names().filter((name) => !isMovingName(name)), ...listPresentTenants(control)]);
      if (tenant === null ? there.size === 0 : !there.has(tenant)) return;
      const name = tenant ?? [...there][0];
      throw new EngineError(
        'conflict',
        `the database already holds tenant ${name}: ` +
          (tenant === null ? 'give an empty database or schema' : 'erase it there first'),
      );
    },
    // The commit that opens tenants opens all of them.
    isComplete: false,
    get hasBegun() {
      return begun().length > 0;
    },
    reset: () => begun().forEach((name) => tenants.drop(name)),
    make(tenant) {
      const name = movingName(sourceKey, tenant);
      tenants.make(name);
      return openTenantOf(opened, tenant, name);
    },
    finish(ids, work) {
      connection.takeAlone();
      control.write(() => {
        for (const id of ids) {
          const text = `UPDATE ${connection.tenantsSchema}.tenants SET id = $1 WHERE id = $2`;
          connection.query(text, [id, movingName(sourceKey, id)]);
        }
        work(control);
      });
    },
    close: opened.close,
  };
}

/**
 * Opens a tenant of the database. The caller closes it.
 * @param id the tenant's id
 * @param name the name that the tenant has in the database now, which differs from `id` while it is being moved in
 */
export function openTenantOf(
  { database, config, tenants }: Pick<Opened, 'database' | 'config' | 'tenants'>,
  id: string,
  name: string,
): MovedTenant {
  // The path of no file: the tenant's own may be there as well.
  const path = join(stagingFolder(config.paths), 'postgres', `${id}.sqlite`);
  const place = { database, tenant: name };
  const store = openTenantStore({ ...place, path, role: 'worker' });
  return {
    path,
    place,
    rows: tenants.rowsOf(name),
    store,
    *readUpload(upload) {
      for (let part = 0; ; part += 1) {
        const data = findUploadPart(store, upload, part);
        if (data === undefined) return;
        yield { name: upload, part, data };
      }
    },
    writeUpload: (part) => store.write(() => putUploadPart(store, part, Date.now())),
    rewriteWords: null,
    close: () => store.close(),
  };
}
