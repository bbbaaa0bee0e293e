import type { Tenant } from '../engine.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Makes the methods that read which provider calls were made for a tenant, and what they used. */
export function createProviderCallMethods(
  options: TenantOptions,
): Pick<Tenant, 'listProviderCalls' | 'listProviderUsage'> {
  const { path, readers } = options;
  return {
    listProviderCalls: (filter, page) => readers.read(path, 'listProviderCalls', { filter, page }),
    listProviderUsage: (since) => readers.readFew(path, 'listProviderUsage', { since }),
  };
}
