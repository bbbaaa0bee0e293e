/** Translation of registered servers to the names of the wire. */
import type { FederationRecord } from '../../engine/index.ts';
import type { ServerItem } from '../schemas/federation.ts';

export function serverItem({ name, url, remoteTenant, hasKey, createdAt }: FederationRecord): ServerItem {
  return { name, url, tenant: remoteTenant, has_key: hasKey, created_at: createdAt };
}
