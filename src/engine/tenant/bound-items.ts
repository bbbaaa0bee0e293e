import type { Tenant } from '../engine.ts';
import { noItem } from '../errors.ts';
import type { CursorPage, ItemFilter, ItemPlace } from '../types.ts';
import { listed, type Reach } from './bound-reach.ts';
import { joinedPage } from './list-pages.ts';

/**
 * Makes the methods of items for a bound key: items outside its bounds are answered as not found, and what it stores
 * gets the user and the tags of its bounds.
 */
export function itemMethods(tenant: Tenant, { tags, holds, heldSlices, ownerOf, onlyOwn, ownOf, reachedIds }: Reach) {
  const ownPlace = (place: ItemPlace) => ({ ...place, userId: ownerOf(place.userId) });
  const ownItems = (filter: ItemFilter) => ({ ...filter, userId: ownerOf(filter.userId), withinTags: tags });
  const streamItems = async (filter: ItemFilter, page: CursorPage, signal?: AbortSignal) =>
    heldSlices(await tenant.streamItems(ownItems(filter), page, signal));
  return {
    putItem: async (item, options) => tenant.putItem({ ...item, ...ownOf(item) }, { ...options, withinTags: tags }),
    async getItem(place) {
      const item = await tenant.getItem(ownPlace(place));
      if (!holds(item)) throw noItem();
      return item;
    },
    async renewItems(ids) {
      const reached = await reachedIds(ids);
      if (!ids.every((id) => reached.has(id))) throw noItem();
      await tenant.renewItems(ids);
    },
    deleteItem: async (place, options) => tenant.deleteItem(ownPlace(place), { ...options, withinTags: tags }),
    moveNamespace: async (move) =>
      tenant.moveNamespace({ ...move, userId: ownerOf(move.userId) }, { withinTags: tags }),
    deleteNamespace: async (place) =>
      tenant.deleteNamespace({ ...place, userId: ownerOf(place.userId) }, { withinTags: tags }),
    listItems: async (filter, page) => joinedPage(await streamItems(filter, page)),
    streamItems,
    listNamespaces: async (filter, page) =>
      tenant.listNamespaces({ ...filter, userId: onlyOwn(listed(filter.userId))?.[0], withinTags: tags }, page),
  } satisfies Partial<Tenant>;
}

/**
 * Makes the methods for a bound key that tell which memories exist, list names and return graphs: they see only
 * memories within its bounds. The neighbourhood of another memory is answered as not found.
 */
export function listMethods(tenant: Tenant, { tags, reachedMemory, ownerOf, onlyOwn, withTags }: Reach) {
  return {
    listPresent: async (ids, { userIds, withinTags = [], writtenBy }) =>
      tenant.listPresent(ids, { userIds: onlyOwn(userIds), withinTags: withTags(withinTags), writtenBy }),
    listNames: async (kind, filter, page) =>
      tenant.listNames(kind, { ...filter, userId: onlyOwn(listed(filter.userId))?.[0], withinTags: tags }, page),
    async neighbourhood(id, around) {
      await reachedMemory(id);
      return tenant.neighbourhood(id, { ...around, withinTags: tags });
    },
    userGraph: async (userId, bounds) => tenant.userGraph(ownerOf(userId), { ...bounds, withinTags: tags }),
  } satisfies Partial<Tenant>;
}
