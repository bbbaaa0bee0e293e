/**
 * The standing queries and webhooks that a bound key (API key limited to a user or to tags) may see: those of its user.
 */

import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import type { StandingPage } from '../types.ts';
import { listed, type Reach, refusal } from './bound-reach.ts';

/**
 * Makes the methods of standing queries and webhooks for a bound key: they see only those of its user. A key that is
 * bound to tags gets `forbidden`, since standing queries and webhooks have no tags. `tendStanding` and `standingDueAt`,
 * which are for the service itself, are refused to every bound key.
 */
export function standingMethods(tenant: Tenant, { tags, bounds, ownerOf, onlyOwn }: Reach) {
  const requireUntagged = () => {
    if (tags.length > 0) throw refusal();
  };
  const ownPage = <Page extends StandingPage>(page: Page): Page => {
    requireUntagged();
    return { ...page, userId: onlyOwn(listed(page.userId))?.[0] ?? bounds.userId };
  };
  const owned = <Item extends { readonly userId?: string | undefined }>(item: Item): Item => {
    requireUntagged();
    return { ...item, userId: ownerOf(item.userId ?? '') };
  };
  const reached = async <Item extends { readonly userId: string | null }>(read: () => Promise<Item>, what: string) => {
    requireUntagged();
    const item = await read();
    if (bounds.userId !== undefined && item.userId !== bounds.userId)
      throw new EngineError('not_found', `no ${what} with this id`);
    return item;
  };
  const reachedQuery = (id: string) => reached(() => tenant.getStandingQuery(id), 'standing query');
  const reachedHook = (id: string) => reached(() => tenant.getWebhook(id), 'webhook');
  return {
    createStandingQuery: async (query) => tenant.createStandingQuery(owned(query)),
    listStandingQueries: async (page) => tenant.listStandingQueries(ownPage(page)),
    getStandingQuery: reachedQuery,
    async listStandingAnswers(id, page) {
      await reachedQuery(id);
      return tenant.listStandingAnswers(id, page);
    },
    async deleteStandingQuery(id) {
      await reachedQuery(id);
      await tenant.deleteStandingQuery(id);
    },
    createWebhook: async (webhook) => tenant.createWebhook(owned(webhook)),
    listWebhooks: async (page) => tenant.listWebhooks(ownPage(page)),
    getWebhook: reachedHook,
    async deleteWebhook(id) {
      await reachedHook(id);
      await tenant.deleteWebhook(id);
    },
    async listDeliveries(id, page) {
      await reachedHook(id);
      return tenant.listDeliveries(id, page);
    },
    async retryDeliveries(id) {
      await reachedHook(id);
      return tenant.retryDeliveries(id);
    },
    tendStanding: async () => {
      throw refusal();
    },
    standingDueAt: async () => {
      throw refusal();
    },
  } satisfies Partial<Tenant>;
}
