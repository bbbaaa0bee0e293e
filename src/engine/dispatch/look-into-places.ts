import { addressOf, databaseNameOf, placeOf, type PlaceSettings } from '../control/place-of.ts';
import { EngineError, serialiseError } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import type { Logger } from '../ports.ts';
import { lookIntoTenant, openTenantStamps, type TenantStamps } from '../store/postgres/tenant-database.ts';
import type { LedgerPollerOptions } from './ledger-poller.ts';

/** What counts and logs databases that cannot be read. */
interface Reporting {
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'dispatchFailures'>;
}

/**
 * Returns the options with which a poller finds work of tenants that live in PostgreSQL: one statement for each
 * database reads which of its tenants have changed since the last look. A further database (OM_DATABASES) that does not
 * answer or is not known is left out of the look, counted, and logged once. Without OM_DATABASE_URL the options are
 * empty, and the poller reads the tenants' files.
 */
export function lookIntoPlaces(
  config: PlaceSettings,
  reporting: Reporting,
): Pick<LedgerPollerOptions, 'open' | 'stamps'> {
  if (config.OM_DATABASE_URL === undefined) return {};
  const databases = new Map<string | null, TenantStamps>();
  const report = createReport(reporting);
  const stampsIn = (name: string | null) => {
    let stamps = databases.get(name);
    if (stamps === undefined) {
      const database = addressOf(config, name);
      if (database === undefined) throw new EngineError('unavailable', 'OM_DATABASES does not name it');
      databases.set(name, (stamps = openTenantStamps({ database, name })));
    }
    return stamps.read();
  };
  const readStamps = (name: string | null) => {
    // Without its own database a process can do nothing for anybody.
    if (name === null) return stampsIn(null);
    try {
      const stamps = stampsIn(name);
      report(name, undefined);
      return stamps;
    } catch (error) {
      report(name, error);
      return undefined;
    }
  };
  return {
    open: (path) => lookIntoTenant({ ...placeOf(config, path)!, path }),
    stamps: {
      read() {
        const byDatabase = new Map<string | null, ReadonlyMap<string, string> | undefined>();
        return (path) => {
          const name = databaseNameOf(config, path);
          if (!byDatabase.has(name)) byDatabase.set(name, readStamps(name));
          const byTenant = byDatabase.get(name);
          return byTenant && { stamp: byTenant.get(placeOf(config, path)!.tenant) ?? '', isSettled: true };
        };
      },
      close: () => databases.forEach((stamps) => stamps.close()),
    },
  };
}

/** Makes the function that notes whether a database could be read; `undefined` as the error means that it could. */
function createReport({ logger, metrics }: Reporting): (name: string, error: unknown) => void {
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
