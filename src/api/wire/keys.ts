/** Translates keys to the field names of the API. */
import type { KeyRecord } from '../../engine/index.ts';
import type { KeyItem } from '../schemas/keys.ts';

/**
 * Makes the description of a key for an admin of one of its tenants: without its secret, and without its other tenants.
 */
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
