/** The consolidations that a bound key (API key limited to a user or to tags) may see: those of its user. */

import type { Tenant } from '../engine.ts';
import { listed, type Reach, refusal } from './bound-reach.ts';

/**
 * Makes the methods of consolidations for a bound key: they see only those of its user. A key that is bound to tags
 * gets `forbidden`, since a run consolidates memories of a user whatever their tags.
 */
export function consolidationMethods(tenant: Tenant, { tags, bounds, ownerOf, onlyOwn, ownJobs }: Reach) {
  const requireUntagged = () => {
    if (tags.length > 0) throw refusal();
  };
  const owned = <Scope extends { readonly userId: string | null }>(scope: Scope): Scope => {
    requireUntagged();
    return { ...scope, userId: ownerOf(scope.userId ?? '') };
  };
  return {
    async consolidate(scope) {
      const queued = await tenant.consolidate(owned(scope));
      ownJobs.add(queued.jobId);
      return queued;
    },
    proposeConsolidations: async (scope, limit) => tenant.proposeConsolidations(owned(scope), limit),
    async listConsolidations(page) {
      requireUntagged();
      return tenant.listConsolidations({ ...page, userId: onlyOwn(listed(page.userId))?.[0] ?? bounds.userId });
    },
    async undoConsolidation(id) {
      requireUntagged();
      return tenant.undoConsolidation(id, bounds.userId);
    },
  } satisfies Partial<Tenant>;
}
