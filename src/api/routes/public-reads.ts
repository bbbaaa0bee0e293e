import type { Holder } from '../../engine/index.ts';

/**
 * Tells whether a request came without a key, as `OM_PUBLIC_READS` allows. Such a request must not change the tenant's
 * memories.
 */
export function isPublicRead({ role, keyId }: Holder): boolean {
  return role === 'read' && keyId === 'anonymous';
}
