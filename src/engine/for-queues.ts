/**
 * The exports for a process that hands out the jobs of the ledgers through queues. They are no part of the package,
 * and are apart from the workers' exports: this thread runs no step, and loading what steps need would cost it 10 MB.
 */

export { openControlDatabase } from './control/open-control-database.ts';
export { placeOf } from './control/place-of.ts';
export { createDispatcher } from './dispatch/dispatcher.ts';
export type { DispatchLedger } from './dispatch/dispatch-ports.ts';
export { createTenantFinder, ledgerOverStores, queuePlaceOf } from './dispatch/ledgers.ts';
export { openLedgerPoller } from './dispatch/open-poller.ts';
export { failpoint } from './failpoint.ts';
export { openTenant } from './tenant-file/open-tenant.ts';
export { createTenantPool } from './tenant-file/tenant-pool.ts';
