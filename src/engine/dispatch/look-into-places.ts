import type { Config } from '../config.ts';
import { placeOf } from '../control/place-of.ts';
import { lookIntoTenant, openTenantStamps } from '../store/postgres/tenant-database.ts';
import type { LedgerPollerOptions } from './ledger-poller.ts';

/**
 * Returns the options with which a poller finds work of tenants that live in PostgreSQL: one statement reads which of
 * them have changed since its last look. Without OM_DATABASE_URL they are empty, and the poller reads the tenants'
 * files.
 */
export function lookIntoPlaces(config: Config): Pick<LedgerPollerOptions, 'open' | 'stamps'> {
  const { OM_DATABASE_URL: database } = config;
  if (database === undefined) return {};
  const stamps = openTenantStamps(database);
  return {
    open: (path) => lookIntoTenant({ ...placeOf(config, path)!, path }),
    stamps: {
      read() {
        const byTenant = stamps.read();
        return (path) => ({ stamp: byTenant.get(placeOf(config, path)!.tenant) ?? '', isSettled: true });
      },
      close: stamps.close,
    },
  };
}
