import type { Quota } from '../commands/quota.ts';
import type { TenantOptions } from './tenant-options.ts';

/**
 * Returns the present quota of a tenant, in which 0 stands for no limit; null if it has neither limit, so that commits
 * need not count memories.
 */
export function quotaOf({ id, control }: Pick<TenantOptions, 'id' | 'control'>): Quota | null {
  const { max_memories: maxMemories, max_mb: maxMb } = control.limits.inForce({ tenantId: id });
  return maxMemories === 0 && maxMb === 0 ? null : { maxMemories, maxMb };
}
