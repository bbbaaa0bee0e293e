import { setTimeout as pause } from 'node:timers/promises';
import type { Tenant } from '../engine/index.ts';

/** Time between two looks for new events of a tenant (ms). */
const LOOK_MS = 200;

/**
 * Name under which looks wait for a reader thread, beside the keys of the tenant: a key with many reads of its own
 * keeps no stream waiting.
 */
const READER = 'event streams';

/** The next look at the newest event of each tenant, which all its streams wait for. */
const looks = new Map<string, Promise<string>>();

/**
 * Returns the cursor of the tenant's newest event at the next look, which is 200 ms after the first call that waits for
 * it. However many streams a tenant has open, a process makes one look for all of them.
 * @throws what `newestEvent` throws
 */
export function nextLook(tenant: Pick<Tenant, 'id' | 'as'>): Promise<string> {
  let look = looks.get(tenant.id);
  if (look === undefined) {
    look = pause(LOOK_MS).then(() => {
      looks.delete(tenant.id);
      return tenant.as(READER).newestEvent();
    });
    looks.set(tenant.id, look);
  }
  return look;
}
