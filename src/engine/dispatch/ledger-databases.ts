import { setImmediate as yieldTurn } from 'node:timers/promises';
import { addressOf, type PlaceSettings } from '../control/place-of.ts';
import { tenantAtPath } from '../control/tenant-paths.ts';
import { assert, EngineError, isEngineError, serialiseError } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import type { Logger } from '../ports.ts';
import { openLedgerReader, type LedgerReader, type TenantStamp } from '../store/postgres/ledger-reader.ts';
import { postgresError } from '../store/postgres/postgres-error.ts';

export interface LedgerDatabasesOptions {
  readonly config: PlaceSettings;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'dispatchFailures'>;
}

/**
 * The ledgers of tenants in the databases of a service, by the tenants' paths. A further database (OM_DATABASES) that
 * does not answer or is not known is left out, counted at each failure, and logged at the first. `readRows` and
 * `readEach` throw the error of the database of OM_DATABASE_URL if that one cannot be read, since without it a process
 * can do nothing; after `close`, EngineError `unavailable`.
 */
export interface LedgerDatabases {
  /**
   * Reads the rows of the tenants of all databases in which these tenants are.
   * @returns a function that returns the row of a tenant; null if there is none of this placement, undefined if its
   *   database cannot be read
   */
  readRows(paths: readonly string[]): Promise<(path: string) => TenantStamp | null | undefined>;
  /**
   * Calls `work` for each database, with the numbers of those of the tenants that it has, and returns the results by
   * path. If `work` fails in a way that one ledger may cause, it is called again for each half of the numbers. Left out
   * are tenants without a row, and those whose ledger cannot be read; each such failure is counted, and the first of a
   * series is logged.
   */
  readEach<T>(
    paths: readonly string[],
    work: (reader: LedgerReader, tenants: readonly number[]) => Promise<ReadonlyMap<number, T>>,
  ): Promise<Map<string, T>>;
  /** Forgets what is known of all tenants but these. */
  keepOnly(paths: ReadonlySet<string>): void;
  close(): void;
}

/** Where the ledger of a tenant is. */
interface Place {
  /** Name of a further database (OM_DATABASES); null for the one of OM_DATABASE_URL. */
  readonly name: string | null;
  readonly tenant: string;
  readonly placement: number;
  /** Number of the tenant's row, as it was last read; undefined if it was not read yet or there was none. */
  number: number | undefined;
  /** Whether its ledger could not be read when it was last tried. */
  isUnusable: boolean;
}

/** Number of paths that are taken apart before the thread yields to other work. */
const A_TURN = 1_000;

/** Opens the ledgers of all databases, each when it is first read. The caller must close them. */
export function openLedgerDatabases(options: LedgerDatabasesOptions): LedgerDatabases {
  const { config } = options;
  const databases = openReaders(options);
  const places = new Map<string, Place>();
  const placeAt = (path: string): Place => {
    let place = places.get(path);
    if (place === undefined) places.set(path, (place = findPlace(config, path)));
    return place;
  };

  async function readRows(paths: readonly string[]): ReturnType<LedgerDatabases['readRows']> {
    const names = new Set<string | null>();
    for (const [at, path] of paths.entries()) {
      names.add(placeAt(path).name);
      if (at % A_TURN === A_TURN - 1) await yieldTurn();
    }
    return rowsAmong(await databases.read(names, (reader) => reader.readTenants()));
  }
  /**
   * Returns the same function as `readRows`, but reads the rows of these tenants only, not those of whole databases.
   */
  async function readRowsOf(paths: readonly string[]): ReturnType<LedgerDatabases['readRows']> {
    const byName = Map.groupBy(paths.map(placeAt), ({ name }) => name);
    const idsIn = (name: string | null) => byName.get(name)!.map(({ tenant }) => tenant);
    return rowsAmong(await databases.read(new Set(byName.keys()), (reader, name) => reader.readTenants(idsIn(name))));
  }
  function rowsAmong(tenantsIn: ReadonlyMap<string | null, ReadonlyMap<string, TenantStamp>>) {
    return (path: string) => {
      const place = placeAt(path);
      const tenants = tenantsIn.get(place.name);
      if (tenants === undefined) return undefined;
      const row = rowOf(place, tenants);
      place.number = row?.number;
      return row ?? null;
    };
  }

  return {
    readRows,
    async readEach(paths, work) {
      const strange = paths.filter((path) => placeAt(path).number === undefined);
      // As those of tenants that were just made.
      if (strange.length > 0) strange.forEach(await readRowsOf(strange));
      const wanted = paths.map((path) => ({ path, place: placeAt(path) })).filter(hasNumber);
      const byName = Map.groupBy(wanted, ({ place }) => place.name);
      const found = await databases.read(new Set(byName.keys()), (reader, name) => {
        const places = new Map(byName.get(name)!.map(({ place }) => [place.number, place]));
        return readSound([...places.keys()], (numbers) => work(reader, numbers), {
          onFailure: (number, error) => noteUnusable(places.get(number)!, error, options),
        });
      });
      return new Map(
        wanted.flatMap(({ path, place }) => {
          const result = found.get(place.name)?.get(place.number);
          if (result === undefined) return [];
          place.isUnusable = false;
          return [[path, result] as const];
        }),
      );
    },
    keepOnly(paths) {
      if (places.size <= paths.size) return;
      for (const path of places.keys()) if (!paths.has(path)) places.delete(path);
    },
    close: databases.close,
  };
}

function findPlace(config: PlaceSettings, path: string): Place {
  const found = tenantAtPath(config.paths, path);
  assert(found !== undefined, 'the path of a tenant');
  const { tenant, placement } = found;
  return { tenant, name: placement.database, placement: placement.number, number: undefined, isUnusable: false };
}

function noteUnusable(place: Place, error: unknown, { logger, metrics }: LedgerDatabasesOptions): void {
  metrics.dispatchFailures.inc();
  if (!place.isUnusable) logger.warn({ code: serialiseError(error).code }, 'ledger_unusable');
  place.isUnusable = true;
}

/**
 * Returns the row of the tenant of a place. Undefined if there is none, or if it belongs to another placement: then the
 * tenant has moved to or from another database.
 */
function rowOf(place: Place, tenants: ReadonlyMap<string, TenantStamp>): TenantStamp | undefined {
  const row = tenants.get(place.tenant);
  // A row of before rows had the number of a placement may be of any.
  return row === undefined || (row.placement ?? place.placement) === place.placement ? row : undefined;
}

function hasNumber<T extends { readonly place: Place }>(wanted: T): wanted is T & { place: { number: number } } {
  return wanted.place.number !== undefined;
}

/**
 * Reads ledgers by the numbers of their tenants. If that fails in a way that one damaged ledger may cause, it reads
 * each half of them, down to single ones, so that the others are read all the same.
 * @param options.onFailure called for each tenant whose ledger alone cannot be read; it is left out of the result
 * @throws the error of `read` if it concerns the whole database
 */
async function readSound<T>(
  numbers: readonly number[],
  read: (numbers: readonly number[]) => Promise<ReadonlyMap<number, T>>,
  options: { readonly onFailure: (number: number, error: unknown) => void },
): Promise<ReadonlyMap<number, T>> {
  try {
    return await read(numbers);
  } catch (error) {
    // A database that does not answer, is busy, or refuses the login or the statement fails for all of them.
    if (!isEngineError(error, 'internal') || OF_ALL.test(postgresError(error)?.code ?? '')) throw error;
    if (numbers.length === 1) {
      options.onFailure(numbers[0]!, error);
      return new Map();
    }
    const half = Math.ceil(numbers.length / 2);
    const first = await readSound(numbers.slice(0, half), read, options);
    return new Map([...first, ...(await readSound(numbers.slice(half), read, options))]);
  }
}

/**
 * Matches the SQLSTATE of errors that concern the whole database and not one ledger: logins, database names,
 * statements.
 */
const OF_ALL = /^(?:28|3D|42)/;

/** Makes the readers of the databases, each when it is first used. */
function openReaders({ config, logger, metrics }: LedgerDatabasesOptions) {
  const readers = new Map<string | null, LedgerReader>();
  const report = createReport({ logger, metrics });
  let isClosed = false;
  const readerOf = (name: string | null): LedgerReader => {
    if (isClosed) throw new EngineError('unavailable', 'the ledgers are closed');
    let reader = readers.get(name);
    if (reader === undefined) {
      const database = addressOf(config, name);
      if (database === undefined) throw new EngineError('unavailable', 'OM_DATABASES does not name it');
      readers.set(name, (reader = openLedgerReader({ database, name })));
    }
    return reader;
  };
  return {
    /**
     * Reads from all these databases at the same time; null names the one of `OM_DATABASE_URL`. Another one that cannot
     * be read is reported and left out of the result.
     * @throws the error of the database of `OM_DATABASE_URL`; that of any database after `close`
     */
    async read<T>(
      names: ReadonlySet<string | null>,
      work: (reader: LedgerReader, name: string | null) => Promise<T>,
    ): Promise<Map<string | null, T>> {
      const results = new Map<string | null, T>();
      const readOne = async (name: string | null) => {
        try {
          results.set(name, await work(readerOf(name), name));
          if (name !== null) report(name, undefined);
        } catch (error) {
          if (name === null || isClosed) throw error;
          report(name, error);
        }
      };
      await Promise.all([...names].map(readOne));
      return results;
    },
    close() {
      isClosed = true;
      for (const reader of readers.values()) reader.close();
    },
  };
}

/**
 * Makes the function that records whether a database could be read: called with `undefined` as the error, it could. It
 * counts each failure, and logs the first of a series.
 */
function createReport({
  logger,
  metrics,
}: Pick<LedgerDatabasesOptions, 'logger' | 'metrics'>): (name: string, error: unknown) => void {
  const unusable = new Set<string>();
  return (name, error) => {
    if (error === undefined) {
      unusable.delete(name);
      return;
    }
    metrics.dispatchFailures.inc();
    if (unusable.has(name)) return;
    unusable.add(name);
    const { code, message } = serialiseError(error);
    logger.warn({ database: name, code, error: message }, 'database_unusable');
  };
}
