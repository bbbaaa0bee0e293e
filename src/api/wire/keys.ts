/** Translation of keys to the names of the wire. */
import type { KeyRecord } from '../../engine/index.ts';
import type { KeyItem } from '../schemas/keys.ts';

/** A key as an admin of one of its tenants sees it: without its secret, and without its other tenants. */
export function keyItem(key: KeyRecord): KeyItem {
  return {
    id: key.id,
    role: key.role,
    name: key.label,
    user_id: key.userId,
    tags: [...key.tags],
    created_at: key.createdAt,
    expires_at: key.expiresAt,
    last_used_at: key.lastUsedAt,
    revoked_at: key.revokedAt,
  };
}
