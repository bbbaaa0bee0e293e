import type { Tenant } from '../engine.ts';
import { hasEvents, newestCursor } from '../store/events.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Makes the methods by which a tenant returns its change feed. */
export function createEventMethods(options: TenantOptions): Pick<Tenant, 'listEvents' | 'newestEvent'> {
  const { path, config, readers, writer } = options;
  /** Lets the writer begin the change feed in a file that has not been written to since `OM_EVENTS` was switched on. */
  const ensureFeed = async () => {
    if (config.OM_EVENTS && !hasEvents(options.open().store)) await writer.write(path, 'open', {});
  };
  return {
    async listEvents(query) {
      await ensureFeed();
      return readers.read(path, 'listEvents', query);
    },
    async newestEvent() {
      await ensureFeed();
      return newestCursor(options.open().store);
    },
  };
}
