/** Bounds of the key whose view of two worlds is compared, and where the hidden things are that differ between them. */
export interface BoundKey {
  readonly name: string;
  readonly key: { readonly userId?: string; readonly tags?: readonly string[] };
  /** Bounds outside of which everything is hidden; `tenant` for a key that reaches a tenant as a whole. */
  readonly hides: 'tags' | 'user' | 'tenant';
}

export const BOUND_KEYS: readonly BoundKey[] = [
  { name: 'tags', key: { tags: ['work'] }, hides: 'tags' },
  { name: 'a user', key: { userId: 'ana' }, hides: 'user' },
  { name: 'a tenant', key: {}, hides: 'tenant' },
  { name: 'a user and tags', key: { userId: 'ana', tags: ['work'] }, hides: 'tags' },
];
