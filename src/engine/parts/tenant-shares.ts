import type { ControlDatabase } from '../control/control-database.ts';
import { createDocumentShares, type DocumentShare } from '../control/document-shares.ts';
import type { RateLimits } from '../control/rate-limits.ts';
import { createTenantFinder } from '../dispatch/ledgers.ts';

/**
 * Creates a function that returns how much of the document parsers and page fetches a tenant may use. Its argument is
 * the path of the tenant's file; it returns undefined for a file that belongs to no tenant.
 */
export function createTenantShares(
  control: ControlDatabase,
  rates: RateLimits,
): (path: string) => DocumentShare | undefined {
  const tenantOf = createTenantFinder(control);
  const shareOf = createDocumentShares(control, rates);
  return (path) => {
    const tenant = tenantOf(path);
    return tenant === undefined ? undefined : shareOf(tenant);
  };
}
