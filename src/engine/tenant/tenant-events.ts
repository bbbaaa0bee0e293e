import type { Tenant } from '../engine.ts';
import { isEngineError } from '../errors.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Makes the methods by which a tenant returns its change feed. */
export function createEventMethods(options: TenantOptions): Pick<Tenant, 'listEvents' | 'newestEvent'> {
  const { path, config, readers, writer } = options;
  const newestEvent = async () => {
    try {
      return await readers.read(path, 'newestEvent', undefined);
    } catch (error) {
      if (!config.OM_EVENTS || !isEngineError(error, 'conflict')) throw error;
    }
    // Nothing was written since `OM_EVENTS` was switched on: the writer begins the feed when it opens the tenant.
    await writer.write(path, 'open', {});
    return readers.read(path, 'newestEvent', undefined);
  };
  return {
    async listEvents(query) {
      await newestEvent();
      return readers.read(path, 'listEvents', query);
    },
    newestEvent,
  };
}
