import type { Tenant } from '../engine.ts';
import { isEngineError } from '../errors.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Makes the methods by which a tenant returns its change feed. */
export function createEventMethods(options: TenantOptions): Pick<Tenant, 'listEvents' | 'newestEvent'> {
  const { path, config, readers, writer } = options;
  const newest = () => readers.read(path, 'newestEvent', undefined);
  /** Whether an error may mean that nothing was written since `OM_EVENTS` was switched on, so that there is no feed. */
  const mayLackFeed = (error: unknown) => config.OM_EVENTS && isEngineError(error, 'conflict');
  /** Reads the newest cursor. Where there is no feed, the writer first begins it, as it does when it opens a tenant. */
  const newestEvent = async () => {
    try {
      return await newest();
    } catch (error) {
      if (!mayLackFeed(error)) throw error;
    }
    await writer.write(path, 'open', {});
    return newest();
  };
  return {
    async listEvents(query) {
      const list = () => readers.read(path, 'listEvents', query);
      try {
        return await list();
      } catch (error) {
        if (!mayLackFeed(error)) throw error;
      }
      await newestEvent();
      return list();
    },
    newestEvent,
  };
}
