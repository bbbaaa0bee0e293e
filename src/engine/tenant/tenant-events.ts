import type { Tenant } from '../engine.ts';
import { isEngineError } from '../errors.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Makes the methods by which a tenant returns its change feed. */
export function createEventMethods(options: TenantOptions): Pick<Tenant, 'listEvents' | 'newestEvent'> {
  const { path, config, readers, writer } = options;
  const newest = () => readers.read(path, 'newestEvent', undefined);
  /**
   * Runs a read. If nothing was written since `OM_EVENTS` was switched on, the writer begins the feed, as it does when
   * it opens the tenant, and the read runs again.
   */
  const withFeed = async <T>(read: () => Promise<T>): Promise<T> => {
    try {
      return await read();
    } catch (error) {
      if (!config.OM_EVENTS || !isEngineError(error, 'conflict')) throw error;
      const isOn = await newest().then(
        () => true,
        () => false,
      );
      if (isOn) throw error;
    }
    await writer.write(path, 'open', {});
    return read();
  };
  return {
    listEvents: (query) => withFeed(() => readers.read(path, 'listEvents', query)),
    newestEvent: () => withFeed(newest),
  };
}
