/**
 * The door of a process that hands out the jobs of the ledgers by way of Redis. No part of the package, and apart from the workers' door:
 * this thread runs no step, and holding what steps need would cost it some 10 MB.
 */

export { openControlDatabase } from './control/open-control-database.ts';
export { createDispatcher } from './dispatch/dispatcher.ts';
export type { DispatchLedger } from './dispatch/dispatch-ports.ts';
export { createTenantFinder, ledgerOverStores, queuePrefix } from './dispatch/ledgers.ts';
export { createLookout } from './dispatch/lookout.ts';
export { failpoint } from './failpoint.ts';
export { openTenant } from './tenant-file/open-tenant.ts';
export { createTenantPool } from './tenant-file/tenant-pool.ts';
