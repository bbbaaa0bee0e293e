/** The session logs and events that a bound key (API key limited to a user or to tags) may see: those of its user. */

import type { Tenant } from '../engine.ts';
import type { LogPlace } from '../types.ts';
import { listed, type Reach, refusal } from './bound-reach.ts';

/**
 * Makes the methods of session logs for a bound key: they see only the logs of its user. A key that is bound to tags
 * gets `forbidden`, since a log has no tags.
 */
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

/**
 * Makes the methods of the change feed for a bound key: `listEvents` returns only the events of its user; `newestEvent`
 * is the same for all keys. A key that is bound to tags gets `forbidden`, since an event of an erased memory does not
 * say which tags the memory had.
 */
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
