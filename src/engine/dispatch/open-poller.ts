import type { Config } from '../config.ts';
import type { Clock } from '../ports.ts';
import { createDatabasePoller } from './database-poller.ts';
import { openLedgerDatabases, type LedgerDatabasesOptions } from './ledger-databases.ts';
import { createFilePoller, type LedgerPoller } from './ledger-poller.ts';

/**
 * Opens the poller of the tenants' ledgers, which are in PostgreSQL with OM_DATABASE_URL, else in files. The caller
 * closes it.
 */
export function openLedgerPoller({
  config,
  clock,
  ...reporting
}: Omit<LedgerDatabasesOptions, 'config'> & { readonly config: Config; readonly clock: Clock }): LedgerPoller {
  const { OM_LEASE_MS: leaseMs, OM_OPEN_TENANTS: openMost } = config;
  if (config.OM_DATABASE_URL === undefined) return createFilePoller({ openMost, leaseMs, clock });
  return createDatabasePoller({ databases: openLedgerDatabases({ config, ...reporting }), leaseMs, clock });
}
