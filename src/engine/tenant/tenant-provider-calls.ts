import type { Tenant } from '../engine.ts';
import { countEmbedLogs, listEmbedLogs } from '../store/embeddings.ts';
import { listUsage } from '../store/provider-usage.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Makes the methods that read which provider calls were made for a tenant, and what they used. */
export function createProviderCallMethods(
  options: TenantOptions,
): Pick<Tenant, 'listProviderCalls' | 'listProviderUsage'> {
  const store = () => options.open().store;
  return {
    async listProviderCalls(filter, page) {
      const here = store();
      return here.read(() => ({ items: listEmbedLogs(here, filter, page), total: countEmbedLogs(here, filter) }));
    },
    listProviderUsage: async (since) => listUsage(store(), { since }),
  };
}
