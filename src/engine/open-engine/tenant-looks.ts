import { setImmediate as yieldTurn } from 'node:timers/promises';
import type { Config } from '../config.ts';
import type { ControlDatabase } from '../control/control-database.ts';
import { addressOf, databaseNameOf, placeOf } from '../control/place-of.ts';
import { EngineError } from '../errors.ts';
import { hasEvals } from '../store/evals.ts';
import { stampOf } from '../store/file-on-disk.ts';
import { openForLook, type Store } from '../store/open-store.ts';
import { lookIntoTenant } from '../store/postgres/tenant-database.ts';
import { openStampReader, type StampReader } from '../store/postgres/tenant-stamps.ts';
import { hasStanding } from '../store/standing.ts';
import type { TenantLooks } from '../types.ts';

/** Number of tenants whose stamps are read, in a third of a millisecond, before the thread yields to other work. */
const STAMPS_AT_ONCE = 64;

const HAS = { standing: hasStanding, evals: hasEvals } as const;

/** What the last look found in a tenant, and the stamp that the tenant had then. */
interface Found {
  readonly stamp: string;
  readonly has: boolean;
}

/**
 * Makes the looks that find the tenants which have standing queries or webhooks (`standing`), or evaluation sets
 * (`evals`). Only a tenant without a stamp, or with another stamp than at the last look, is opened. The caller closes
 * them.
 */
export function createTenantLooks(
  config: Config,
  control: Pick<ControlDatabase, 'listTenants' | 'findTenantPath' | 'isSilent'>,
) {
  const { read, look, close } = config.OM_DATABASE_URL === undefined ? OF_FILES : ofDatabases(config, control);
  let isClosed = false;
  const known = { standing: new Map<string, Found>(), evals: new Map<string, Found>() };

  async function stampsOf(ids: readonly string[]): Promise<Map<string, string>> {
    const stamps = new Map<string, string>();
    for (let from = 0; from < ids.length; from += STAMPS_AT_ONCE) {
      if (from > 0) await yieldTurn();
      const part = ids.slice(from, from + STAMPS_AT_ONCE);
      const places = part.flatMap((id) => {
        const path = control.findTenantPath(id);
        return path === undefined ? [] : [{ id, path }];
      });
      for (const [id, stamp] of read(places)) stamps.set(id, stamp);
    }
    return stamps;
  }

  const looks: TenantLooks & { close(): void } = {
    stampsOf,
    async *find(what) {
      const ids = control.listTenants().map(({ id }) => id);
      const stamps = await stampsOf(ids);
      const before = known[what];
      known[what] = new Map();
      for (const id of ids) {
        if (isClosed) return;
        const stamp = stamps.get(id);
        let found = before.get(id);
        if (stamp === undefined || found?.stamp !== stamp) {
          await yieldTurn();
          if (isClosed) return;
          found = { stamp: stamp ?? '', has: mayHave(id, what) };
        }
        if (stamp !== undefined) known[what].set(id, found);
        if (found.has) yield id;
      }
    },
    close() {
      isClosed = true;
      close();
    },
  };
  return looks;

  /**
   * Tells whether a tenant has what is looked for. It is also true for a tenant that cannot be read: the caller's own
   * attempt then says what is wrong.
   */
  function mayHave(id: string, what: keyof typeof HAS): boolean {
    try {
      const path = control.findTenantPath(id);
      const store = path === undefined ? undefined : look(path);
      try {
        return store !== undefined && HAS[what](store);
      } finally {
        store?.close();
      }
    } catch {
      return true;
    }
  }
}

/** How stamps of tenants are read, and tenants opened for a look. */
interface Looking {
  /** Returns the stamps by id. A tenant is left out if it may have changed within the resolution of its stamp. */
  read(places: readonly { readonly id: string; readonly path: string }[]): ReadonlyMap<string, string>;
  look(path: string): Store | undefined;
  close(): void;
}

const OF_FILES: Looking = {
  read: (places) =>
    new Map(
      places.flatMap(({ id, path }) => {
        const { stamp, isSettled } = stampOf(path);
        return isSettled ? [[id, stamp] as const] : [];
      }),
    ),
  look: openForLook,
  close() {},
};

/**
 * Opens a tenant in PostgreSQL for a look of the thread that serves requests; undefined for one that was never used.
 * Call it only with OM_DATABASE_URL. The caller closes the store.
 * @throws EngineError `unavailable`, at once if the tenant is in the database of OM_DATABASE_URL and that is silent;
 *   errors of `lookIntoTenant`
 */
export function lookIntoDatabase(
  config: Config,
  control: Pick<ControlDatabase, 'isSilent'>,
  path: string,
): Store | undefined {
  const place = placeOf(config, path)!;
  if (place.name === null && control.isSilent()) throw new EngineError('unavailable', 'the database does not answer');
  return lookIntoTenant({ ...place, path, waitsBriefly: true });
}

/**
 * Makes the looks into tenants in PostgreSQL. One statement for each database reads the stamps; a database that does
 * not answer leaves its tenants out.
 */
function ofDatabases(config: Config, control: Pick<ControlDatabase, 'isSilent'>): Looking {
  const readers = new Map<string | null, StampReader>();
  const readIn = (name: string | null, ids: readonly string[]): ReadonlyMap<string, string> => {
    const database = addressOf(config, name);
    if (database === undefined || (name === null && control.isSilent())) return new Map();
    const reader = readers.get(name) ?? openStampReader({ database, name });
    readers.set(name, reader);
    try {
      return reader.read(ids);
    } catch {
      return new Map();
    }
  };
  return {
    read: (places) =>
      new Map(
        [...Map.groupBy(places, ({ path }) => databaseNameOf(config, path))].flatMap(([name, placed]) => [
          ...readIn(
            name,
            placed.map(({ id }) => id),
          ),
        ]),
      ),
    look: (path) => lookIntoDatabase(config, control, path),
    close: () => readers.forEach((reader) => reader.close()),
  };
}
