import type { Holder } from '../engine/index.ts';

/** Whether a caller reads without a key, as `OM_PUBLIC_READS` allows. */
export function isPublicReader({ role, keyId }: Pick<Holder, 'role' | 'keyId'>): boolean {
  return role === 'read' && keyId === 'anonymous';
}
