import type { ControlDatabase } from '../control/control-database.ts';
import { createDocumentShares, type DocumentShare } from '../control/document-shares.ts';
import type { RateLimits } from '../control/rate-limits.ts';
import { createTenantFinder } from '../dispatch/ledgers.ts';

/**
 * Makes the function that returns the share in parsers and fetches of a tenant, by the path of its file; undefined for
 * a file of no tenant.
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
