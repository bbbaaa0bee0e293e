import type { Tenant } from '../engine.ts';
import { listUsage } from '../store/provider-usage.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Makes the methods that read which provider calls were made for a tenant, and what they used. */
export function createProviderCallMethods(
  options: TenantOptions,
): Pick<Tenant, 'listProviderCalls' | 'listProviderUsage'> {
  const { path, readers } = options;
  return {
    listProviderCalls: (filter, page) => readers.read(path, 'listProviderCalls', { filter, page }),
    listProviderUsage: async (since) => listUsage(options.open().store, { since }),
  };
}
