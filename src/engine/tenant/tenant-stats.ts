import type { Tenant } from '../engine.ts';
import { countEmbedLogs, listEmbedLogs } from '../store/embeddings.ts';
import { listUsage } from '../store/provider-usage.ts';
import type { TenantOptions } from './tenant-options.ts';

type StatsMethods = Pick<Tenant, 'stats' | 'listProviderCalls' | 'listProviderUsage'>;

/** Makes the methods by which a tenant counts its rows and bytes, and the provider calls that were made for it. */
export function createStatsMethods(options: TenantOptions): StatsMethods {
  const { path, readers } = options;
  const store = () => options.open().store;
  return {
    stats: () => readers.read(path, 'stats', {}),
    listProviderCalls: async (filter, page) => ({
      items: listEmbedLogs(store(), filter, page),
      total: countEmbedLogs(store(), filter),
    }),
    listProviderUsage: async (since) => listUsage(store(), { since }),
  };
}
