/** What a key that is bound to a user sees of session logs and of the change feed. */
import type { Tenant } from '../engine.ts';
import type { LogPlace } from '../types.ts';
import { listed, type Reach, refusal } from './bound-reach.ts';

/** Session logs: those of the caller's user. A log has no tags by which it could be within the bounds. */
export function logMethods(tenant: Tenant, { tags, ownerOf }: Reach) {
  const ownPlace = ({ userId, sessionId }: LogPlace): LogPlace => {
    if (tags.length > 0) throw refusal();
    return { userId: ownerOf(userId), sessionId };
  };
  return {
    changeLog: async (place, change) => tenant.changeLog(ownPlace(place), change),
    readLog: async (place, page) => tenant.readLog(ownPlace(place), page),
    popLog: async (place, options) => tenant.popLog(ownPlace(place), options),
    clearLog: async (place) => tenant.clearLog(ownPlace(place)),
  } satisfies Partial<Tenant>;
}

/** Events: those of the caller's user. The tags of a memory that was erased are not known any more. */
export function eventMethods(tenant: Tenant, { tags, onlyOwn }: Reach) {
  return {
    async listEvents(query) {
      if (tags.length > 0) throw refusal();
      return tenant.listEvents({ ...query, userId: onlyOwn(listed(query.userId))?.[0] });
    },
    async newestEvent() {
      if (tags.length > 0) throw refusal();
      return tenant.newestEvent();
    },
  } satisfies Partial<Tenant>;
}
