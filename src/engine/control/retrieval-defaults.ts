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

/** Returns the name and the value of the setting that stores a tenant's defaults for its queries. */
export function defaultsSetting(options: RetrievalOptions): [name: string, value: string] {
  return [SETTING, JSON.stringify(options)];
}
