import type { ControlDatabase } from '../control/control-database.ts';
import type { RetrievalOptions } from '../types.ts';

/** A tenant's own defaults for its queries, kept in the control database. */
const SETTING = 'retrieval';

export function readRetrievalDefaults(control: ControlDatabase, tenantId: string): RetrievalOptions {
  const stored = control.getSetting(tenantId, SETTING);
  return stored === undefined ? {} : (JSON.parse(stored) as RetrievalOptions);
}

/** Replaces all of them. */
export function putRetrievalDefaults(control: ControlDatabase, tenantId: string, options: RetrievalOptions): void {
  control.putSetting(tenantId, SETTING, JSON.stringify(options));
}
