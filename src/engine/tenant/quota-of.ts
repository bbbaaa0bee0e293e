import type { Quota } from '../commands/quota.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Returns the quota of a tenant as it is now; null without one, so that a commit looks at nothing. */
export function quotaOf({ id, control }: Pick<TenantOptions, 'id' | 'control'>): Quota | null {
  const { max_memories: maxMemories, max_mb: maxMb } = control.limits.inForce({ tenantId: id });
  return maxMemories === 0 && maxMb === 0 ? null : { maxMemories, maxMb };
}
