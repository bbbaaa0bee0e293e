import type { Holder } from '../../engine/index.ts';

/** Whether a request came without a key (`OM_PUBLIC_READS`); it must not change the tenant's memories. */
export function isPublicRead({ role, keyId }: Holder): boolean {
  return role === 'read' && keyId === 'anonymous';
}
