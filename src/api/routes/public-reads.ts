import type { Holder } from '../../engine/index.ts';

/**
 * Tells whether a caller has no key and was admitted by `OM_PUBLIC_READS`. Such a request must not change the tenant's
 * memories. While no key is configured it is false, since every caller is an admin then.
 */
export function isPublicRead({ role, keyId }: Holder): boolean {
  return role === 'read' && keyId === 'anonymous';
}
