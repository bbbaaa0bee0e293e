import type { RetrievalOptions } from '../types.ts';
import type { ControlDatabase } from './control-database.ts';

/** Name of the setting in the control database that holds a tenant's defaults for its queries, as JSON. */
const SETTING = 'retrieval';

/** Returns a tenant's own defaults for its queries; empty if it has none. */
export function readRetrievalDefaults(control: ControlDatabase, tenantId: string): RetrievalOptions {
  const stored = control.getSetting(tenantId, SETTING);
  return stored === undefined ? {} : (JSON.parse(stored) as RetrievalOptions);
}

/**
 * Returns the query defaults of the tenant whose file is at a path; empty if it has none, or if no tenant has this
 * path.
 */
export function readRetrievalDefaultsOf(control: ControlDatabase, path: string): RetrievalOptions {
  const tenant = control.listTenants().find(({ id }) => control.findTenantPath(id) === path);
  return tenant === undefined ? {} : readRetrievalDefaults(control, tenant.id);
}

/** Replaces all of a tenant's defaults for its queries, without checks; an empty object removes them. */
export function putRetrievalDefaults(control: ControlDatabase, tenantId: string, options: RetrievalOptions): void {
  control.putSetting(tenantId, SETTING, JSON.stringify(options));
}
