/** Makes and erases tenants in the databases of the settings, and ends moves between them that were broken off. */

import { HOME_DATABASE, type Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import { clearMark } from '../store/postgres/move-steps.ts';
import {
  BRIEFLY,
  claimOn,
  connectTo,
  eraseTenantRows,
  makePlacedTenant,
  placeIdOf,
} from '../store/postgres/placed-tenant.ts';
import { requireNoPause, tryToReach } from '../store/postgres/unreachable-database.ts';
import type { ControlFile } from './control-file.ts';
import { addressOf, type PlaceSettings } from './place-of.ts';
import { abandonMove, endAbandoned, lockMoves, placeNewTenant, readPlacement } from './placements.ts';

/**
 * Least pause between two attempts of a thread to end the broken-off move of a tenant, from the end of the one to the
 * beginning of the next (ms).
 */
const SETTLE_EVERY_MS = 2_000;

/** A connection to the database in which a new tenant will be. The caller closes it. */
interface NewPlace {
  /**
   * Makes the tenant's placement and its row in the database. Call it inside the write that creates the tenant.
   * @throws EngineError `conflict` if rows of an earlier tenant are there
   */
  make(): void;
  close(): void;
}

/** Makes and erases the rows of tenants in the databases in which they are placed. */
export interface PlacedTenants {
  /**
   * Prepares the place of a new tenant: connects to its database, for 5 s at most, and marks a further one that is
   * empty as this service's. Call it before the write that creates the tenant, so that no other write of the control
   * database waits meanwhile.
   * @param name name of the database in OM_DATABASES; `home` or undefined for the one of OM_DATABASE_URL
   * @throws EngineError `invalid` for an unknown name; `conflict` for a further database that has another service's
   *   tenants or is the one of OM_DATABASE_URL; `unavailable` if it does not answer, or did not a moment ago
   */
  prepare(tenant: string, name: string | undefined): NewPlace;
  /**
   * Keeps a tenant from being moved or erased by another process, until the caller calls `close`.
   * @throws EngineError `conflict` while the tenant moves to another database, or another process erases it
   */
  holdStill(tenant: string): { close(): void };
  /**
   * Lists the names of the databases that hold rows of a tenant (null: the one of OM_DATABASE_URL), for `erase`. They
   * stay the same while the tenant is held still.
   */
  findRows(tenant: string): readonly (string | null)[];
  /**
   * Erases the rows of a tenant.
   * @param databases names of the databases from which they must be erased; in others they are erased if these answer
   * @throws EngineError `unavailable` if OM_DATABASES lacks one of `databases`, before anything is erased, or if one of
   *   them does not answer, when rows in others may be erased already
   */
  erase(tenant: string, databases: readonly (string | null)[]): void;
  /**
   * Tries to end the move of a tenant if its process is gone, on this thread or as `settleBy` says. It tries at most
   * once in two seconds, counted from the end of the last attempt, and throws nothing.
   */
  settle(tenant: string): void;
  /** Sets the function by which `settle` ends a move in place of `settleHere`. */
  settleBy(settle: (tenant: string) => Promise<unknown>): void;
  /**
   * Ends the move of a tenant if its process is gone, so that the tenant can be written to again; writes nothing if the
   * move goes on. The writes wait as those of the control database do, and a source that cannot be reached holds up the
   * thread as `tryToReach` says.
   * @throws EngineError `unavailable` if the control database or the source does not answer
   */
  settleHere(tenant: string): void;
}

/**
 * Makes the functions for the databases of the settings. Without OM_DATABASE_URL they do nothing, and `prepare` refuses
 * the name of a database.
 */
export function createPlacedTenants(file: ControlFile, config: PlaceSettings): PlacedTenants {
  const home = config.OM_DATABASE_URL;
  let homeId: string | undefined;
  if (home === undefined) return inFiles;
  return {
    prepare(tenant, name = HOME_DATABASE) {
      const place = name === HOME_DATABASE ? null : name;
      const database = addressOf(config, place);
      if (database === undefined) throw unknownDatabase(config, name);
      const connection = tryToReach(place, () => connectTo(database, BRIEFLY, place));
      try {
        if (place !== null) claimOn(connection, name, (homeId ??= placeIdOf(home, BRIEFLY)));
      } catch (error) {
        connection.close();
        throw error;
      }
      return {
        make: () => makePlacedTenant(connection, tenant, placeNewTenant(file, tenant, place)),
        close: connection.close,
      };
    },
    holdStill(tenant) {
      const held = lockMoves(addressOf(config, null)!, tenant);
      if (held !== undefined) return held;
      const busy = `tenant ${tenant} moves to another database, or another process erases it: wait until it has ended`;
      throw new EngineError('conflict', busy);
    },
    findRows(tenant) {
      const { database, move, remains } = readPlacement(file, tenant);
      return [database, ...(move === null ? [] : [move.to]), ...(remains === null ? [] : [remains.database])];
    },
    erase(tenant, databases) {
      // All addresses are found before any row is erased: what is erased does not come back.
      const addresses = [...new Set(databases)].map((name) => {
        const database = addressOf(config, name);
        if (database !== undefined) return database;
        throw new EngineError(
          'unavailable',
          `tenant ${tenant} has rows in the database ${name}, which OM_DATABASES does not name: nothing is erased`,
        );
      });
      for (const database of addresses) eraseTenantRows(database, tenant);
      // Elsewhere a move may have left the mark of a tenant that went away.
      for (const name of [null, ...Object.keys(config.databases)]) {
        if (databases.includes(name)) continue;
        try {
          eraseTenantRows(addressOf(config, name)!, tenant);
        } catch {
          // The mark says nothing but the id, and a new tenant of this id takes its place.
        }
      }
    },
    ...settlingOf(file, config),
  };
}

/** Makes the functions that end moves whose processes are gone. */
function settlingOf(
  file: ControlFile,
  config: PlaceSettings,
): Pick<PlacedTenants, 'settle' | 'settleBy' | 'settleHere'> {
  /** For each tenant, the time from which this thread may try again to end its move, by the monotonic clock (ms). */
  const settlesAt = new Map<string, number>();
  const settleHere = (tenant: string) => {
    // While the source cannot be reached, nothing is written for nothing.
    const { database } = readPlacement(file, tenant);
    if (database !== null) requireNoPause(database);
    giveUpMove(file, config, tenant, { holdsLock: false });
  };
  let settle: (tenant: string) => unknown = settleHere;
  const tryToSettle = async (tenant: string) => {
    settlesAt.set(tenant, Infinity);
    try {
      await settle(tenant);
    } catch {
      // Not now: the control database or the source does not answer, so the tenant could not be written to either.
    }
    settlesAt.set(tenant, performance.now() + SETTLE_EVERY_MS);
  };
  return {
    settle(tenant) {
      if (performance.now() >= (settlesAt.get(tenant) ?? 0)) void tryToSettle(tenant);
    },
    settleBy: (other) => void (settle = other),
    settleHere,
  };
}

const inFiles: PlacedTenants = {
  prepare(_, name) {
    if (name !== undefined)
      throw new EngineError('invalid', 'a database is chosen only with OM_DATABASE_URL: tenants are files here');
    return { make() {}, close() {} };
  },
  holdStill: () => ({ close() {} }),
  findRows: () => [],
  erase() {},
  settle() {},
  settleBy() {},
  settleHere() {},
};

/**
 * Gives up a move that did not come about, and opens the tenant at its source for writes again.
 * @param options.holdsLock whether the caller holds the lock of moves; otherwise nothing is done while a process moves
 *   the tenant, and the source is asked for 5 s at most and not again for a while after it could not be reached
 * @throws EngineError `unavailable` if the source does not answer; the same call later goes on
 */
export function giveUpMove(
  file: ControlFile,
  config: PlaceSettings,
  tenant: string,
  options: { readonly holdsLock: boolean },
): void {
  const placement = abandonMove(file, tenant, options);
  const source = placement && addressOf(config, placement.database);
  if (source === undefined) return;
  const { token } = placement!.move!;
  const mark = { id: tenant, token };
  if (options.holdsLock) clearMark(source, mark);
  else tryToReach(placement!.database, () => clearMark(source, mark, BRIEFLY));
  endAbandoned(file, tenant, token);
}

/** Returns the EngineError `invalid` for a name that is not one of the settings' databases. It lists their names. */
export function unknownDatabase({ databases }: Pick<Config, 'databases'>, name: string): EngineError {
  const known = [HOME_DATABASE, ...Object.keys(databases)].join(', ');
  return new EngineError('invalid', `no database ${JSON.stringify(name.slice(0, 64))}: OM_DATABASES has ${known}`);
}
