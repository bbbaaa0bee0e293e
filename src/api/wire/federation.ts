/** Translates registered servers to the field names of the API. */
import type { FederationRecord } from '../../engine/index.ts';
import type { ServerItem } from '../schemas/federation.ts';

export function serverItem({ name, url, remoteTenant, hasKey, ...made }: FederationRecord): ServerItem {
  const { createdAt, writtenBy } = made;
  return { name, url, tenant: remoteTenant, has_key: hasKey, created_at: createdAt, written_by: writtenBy };
}
