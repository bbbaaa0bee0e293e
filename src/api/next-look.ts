import { setTimeout as pause } from 'node:timers/promises';
import type { Engine } from '../engine/index.ts';

/** Time between two looks for new events of a tenant (ms). */
const LOOK_MS = 200;
/**
 * Name under which reads for streams take turns at the reader threads, as if it were one more key of the tenant: a key
 * with many reads of its own keeps no stream waiting.
 */
export const STREAM_READER = 'event streams';
/**
 * Name under which streams read pages of events. It is not `STREAM_READER`, so that looks for new events never wait
 * behind many such pages.
 */
export const PAGE_READER = 'event pages';

/** The next look at the newest event of each tenant of an engine, which all its streams wait for. */
const looks = new WeakMap<object, Map<string, Promise<string>>>();

/**
 * Returns the cursor of a tenant's newest event at the next look, which is 200 ms after the first call that waits for
 * it. However many streams a tenant has open, a process makes one look for all of them. It looks where the tenant is
 * now, even for a stream that began at another place.
 * @throws what `Engine.tenant` and `newestEvent` throw
 */
export function nextLook(engine: Pick<Engine, 'tenant'>, tenantId: string): Promise<string> {
  const ofEngine = looks.get(engine) ?? new Map<string, Promise<string>>();
  looks.set(engine, ofEngine);
  let look = ofEngine.get(tenantId);
  if (look === undefined) {
    look = pause(LOOK_MS).then(async () => {
      ofEngine.delete(tenantId);
      return (await engine.tenant(tenantId)).as(STREAM_READER).newestEvent();
    });
    ofEngine.set(tenantId, look);
  }
  return look;
}
