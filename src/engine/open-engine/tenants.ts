import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import type { TenantPool } from '../tenant-file/tenant-pool.ts';
import { createTenant } from '../tenant/tenant.ts';
import type { TenantOptions } from '../tenant/tenant-options.ts';

/**
 * Makes the function that returns a tenant by its id, and keeps each tenant that it made. That function throws
 * EngineError `not_found` if the control database has no such tenant, and looks it up each time, as tenants may be
 * deleted.
 */
export function createTenants({
  pool,
  ...options
}: Omit<TenantOptions, 'id' | 'path' | 'open'> & { readonly pool: TenantPool }): (id: string) => Tenant {
  const tenants = new Map<string, Tenant>();
  return (id) => {
    const path = options.control.findTenantPath(id);
    if (path === undefined) {
      tenants.delete(id);
      throw new EngineError('not_found', options.control.findMoved(id) ?? 'no such tenant');
    }
    let tenant = tenants.get(id);
    if (tenant === undefined) {
      tenant = createTenant({ ...options, id, path, open: () => pool.get(path) });
      tenants.set(id, tenant);
    }
    return tenant;
  };
}
