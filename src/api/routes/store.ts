import { charactersOf, EngineError, type ItemPlace, type Memory, takeTurn } from '../../engine/index.ts';
import { sendObject } from '../json-reply.ts';
import { isOfForeignPage } from '../middleware/refuse-foreign-pages.ts';
import { answerTurn } from '../read-turn.ts';
import { growingPlace } from '../reply-places.ts';
import { requireClient } from '../await-drain.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import {
  MAX_STORE_PAGE,
  storeItem,
  storeItems,
  storeNamespaces,
  storeNamespacesSchema,
  storePlaceQuery,
  storePlaceSchema,
  storePutSchema,
  storeSearchSchema,
  type StoreSearchBody,
} from '../schemas/store.ts';
import { noQuery } from '../schemas/values.ts';
import { clientGone } from '../wait-for-writes.ts';
import { storeItemOf, toStoredItem, toValueConditions } from '../wire/store.ts';
import { readForReply } from './owned-memory.ts';
import { isPublicRead } from './public-reads.ts';

/** Greatest number of items that a query of a store ranks. */
const MAX_RANKED = 200;
/**
 * Length of the items of a page, with the texts by which they are found, that ends the page before the next item would
 * exceed it, in UTF-16 code units. A longer first item is sent nevertheless.
 */
const MAX_REPLY_TEXT = 4 * 1024 * 1024;

/**
 * The routes that LangGraph's own clients call for a store, so that they work with Cairn unchanged. A store's item is
 * an item of Cairn in a namespace; equal values under two keys are two items.
 */
export const storeRoutes: readonly Route[] = [
  route({
    method: 'put',
    path: '/store/items',
    name: 'putStoreItem',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Stores an item under a key, or replaces it',
    query: noQuery,
    body: {
      json: storePutSchema,
      example: { namespace: ['users', 'ana'], key: 'editor', value: { theme: 'dark' } },
    },
    replies: { 204: { description: 'The item is on disk.' } },
    errors: {
      conflict: 'The key is bound to tags which the stored item does not have.',
      too_large: 'The texts at the paths of `index` have more than 256 KiB.',
      unprocessable: "The tenant's privacy policy refuses a text of the item.",
    },
    async handle({ api, tenant, response, readBody }) {
      const body = await readBody();
      await takeTurn();
      await tenant.putItem(toStoredItem(body, api.engine.clock.now()));
      response.status(204).end();
    },
  }),
  route({
    method: 'get',
    path: '/store/items',
    name: 'getStoreItem',
    access: 'read',
    forBoundKeys: true,
    summary: 'Shows the item with a key',
    query: storePlaceQuery,
    replies: { 200: { description: 'The item; null if there is none.', json: storeItem } },
    async handle(call) {
      const { tenant, query, send } = call;
      const { namespace, key, user_id } = query;
      const place: ItemPlace = { userId: user_id ?? '', namespace, key };
      const due: Pick<Memory, 'id' | 'expiresAt'>[] = [];
      const read = async () => {
        const item = await tenant.getItem(place);
        const isDue = due.length === 0 && query.refresh_ttl && item.expiresAt !== null;
        if (!isDue) return item;
        due.push({ id: item.id, expiresAt: item.expiresAt });
        return undefined;
      };
      let found = await orUndefined(() => readForReply(call, read));
      if (due.length > 0) {
        // It is read again: until the writer has answered, it would stay in memory, and two places of one reply could
        // wait for each other.
        await renew(call, due);
        await answerTurn();
        found = await orUndefined(() => readForReply(call, read));
      }
      send(200, found === undefined ? null : storeItemOf(found));
    },
  }),
  route({
    method: 'delete',
    path: '/store/items',
    name: 'deleteStoreItem',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Erases the item with a key, if there is one',
    query: noQuery,
    body: { json: storePlaceSchema, example: { namespace: ['users', 'ana'], key: 'editor' } },
    replies: { 204: { description: 'The item is erased, or there was none with this key.' } },
    async handle({ tenant, response, readBody }) {
      const { namespace, key, user_id } = await readBody();
      const place: ItemPlace = { userId: user_id ?? '', namespace: namespace.join('.'), key };
      await orUndefined(() => tenant.deleteItem(place));
      response.status(204).end();
    },
  }),
  route({
    method: 'post',
    path: '/store/items/search',
    name: 'searchStoreItems',
    access: 'read',
    forBoundKeys: true,
    repeatable: true,
    limited: ['queries'],
    summary: 'Lists items in namespaces, or ranks them by a query',
    description:
      'Without a query, the items are sorted by namespace and key. With a query, the items that it ranks come first, ' +
      'and all others follow by namespace and key, so that a page is filled.',
    query: noQuery,
    body: {
      json: storeSearchSchema,
      example: { namespace_prefix: ['users'], filter: { theme: 'dark' }, query: 'colours of the editor', limit: 5 },
    },
    replies: { 200: { description: 'The items.', json: storeItems } },
    async handle(call) {
      const body = await call.readBody();
      const { found, isCut } = await search(call, body);
      if (body.refresh_ttl !== false) {
        await renew(
          call,
          found.map(({ memory }) => memory),
        );
      }
      const items = found.map(({ memory, score }) => storeItemOf(memory, score));
      await sendObject(call, { items, ...(isCut ? { truncated: true } : {}) }, null);
    },
  }),
  route({
    method: 'post',
    path: '/store/namespaces',
    name: 'listStoreNamespaces',
    access: 'read',
    forBoundKeys: true,
    repeatable: true,
    limited: ['queries'],
    summary: 'Lists namespaces that hold items',
    query: noQuery,
    body: { json: storeNamespacesSchema, example: { prefix: ['users'], max_depth: 2 }, optional: true },
    replies: { 200: { description: 'The namespaces, sorted.', json: storeNamespaces } },
    async handle({ tenant, principal, response, readBody, send }) {
      const { prefix, suffix, max_depth: maxDepth, limit, offset, user_id } = await readBody();
      const filter = {
        userId: principal.userId ?? user_id ?? '',
        prefix: (prefix ?? []).join('.'),
        suffix: (suffix ?? []).join('.'),
        maxDepth: maxDepth ?? undefined,
      };
      const first = offset ?? 0;
      const end = first + (limit ?? 100);
      const namespaces: string[][] = [];
      let passed = 0;
      let cursor: string | undefined;
      do {
        requireClient(response);
        const page = await tenant.listNamespaces(filter, { limit: Math.min(MAX_STORE_PAGE, end), cursor });
        // Those before the page are only counted: together they may have 25 MB.
        const shown = page.items.slice(Math.max(0, first - passed), end - passed);
        namespaces.push(...shown.map(({ path }) => path.split('.')));
        passed += page.items.length;
        cursor = page.next ?? undefined;
      } while (cursor !== undefined && passed < end);
      send(200, { namespaces });
    },
  }),
];

/**
 * Restarts the time to live (`ttl`) of the items that have one. It does nothing if the caller has no key
 * (`OM_PUBLIC_READS`), or if a page of another origin sends the request while no key is configured: a browser lets
 * every page send a GET.
 */
async function renew(
  { api, tenant, principal, request }: TenantCall,
  memories: readonly Pick<Memory, 'id' | 'expiresAt'>[],
): Promise<void> {
  if (isPublicRead(principal) || (api.engine.control.isOpen() && isOfForeignPage(request))) return;
  await tenant.renewItems(memories.filter(({ expiresAt }) => expiresAt !== null).map(({ id }) => id));
}

interface Found {
  readonly memory: Memory;
  /** Score of the item for the query, 0 to 1; undefined if the query does not rank it. */
  readonly score?: number;
}

/**
 * Finds the items of one page, in the order of `inOrder`. The items have at most 4 Mi characters together, but the
 * first one is always included; main memory is reserved for them until they are sent. `isCut` is true if the page
 * ended early because the next item did not fit.
 * @throws EngineError `unavailable` if the client left, or no main memory became free in time
 */
async function search(
  call: TenantCall,
  body: StoreSearchBody,
): Promise<{ readonly found: readonly Found[]; readonly isCut: boolean }> {
  const { limit, offset } = { limit: body.limit ?? 10, offset: body.offset ?? 0 };
  const found: Found[] = [];
  const { hold, settle } = growingPlace(call);
  let [passed, size, isCut] = [0, 0, false];
  for await (const item of inOrder(call, body, { wanted: offset + limit, hold })) {
    requireClient(call.response);
    passed += 1;
    if (passed <= offset) continue;
    const length = charactersOf(item.memory);
    await takeTurn();
    isCut = found.length > 0 && size + length > MAX_REPLY_TEXT;
    if (isCut) break;
    size += length;
    await hold(2 * size);
    found.push(item);
    if (found.length === limit) break;
  }
  settle(2 * size);
  return { found, isCut };
}

/**
 * Yields all items that match the filter: first the items that the query ranks, best first, then the others by
 * namespace and key.
 * @param options `wanted` is the number of items that the caller will read at most; it bounds how many are loaded at
 *   once. `hold` reserves main memory for the ranked items, in bytes, before the first is yielded
 */
async function* inOrder(
  call: TenantCall,
  body: StoreSearchBody,
  { wanted, hold }: { readonly wanted: number; readonly hold: (bytes: number) => Promise<void> },
): AsyncGenerator<Found> {
  const { tenant } = call;
  const userId = call.principal.userId ?? body.user_id ?? '';
  const namespace = (body.namespace_prefix ?? []).join('.');
  const value = toValueConditions(body.filter);
  const ranked = await rank(call, { query: body.query ?? '', userId, namespace, value, wanted });
  await hold(2 * ranked.reduce((sum, { memory }) => sum + charactersOf(memory), 0));
  yield* ranked;
  const seen = new Set(ranked.map(({ memory }) => memory.id));
  const gone = clientGone(call.response);
  let cursor: string | undefined;
  do {
    const limit = Math.min(MAX_STORE_PAGE, wanted);
    const page = await tenant.streamItems({ userId, namespace, value }, { limit, cursor }, gone);
    for await (const slice of page.slices) for (const { memory } of slice) if (!seen.has(memory.id)) yield { memory };
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
}

interface Ranking {
  readonly query: string;
  readonly userId: string;
  readonly namespace: string;
  readonly value: ReturnType<typeof toValueConditions>;
  /** Number of items that the caller will read at most. */
  readonly wanted: number;
}

/**
 * Returns the items that a query ranks, best first, at most 200 and at most `wanted`; none for an empty query. No item
 * is dropped for being similar to another. The same number of items is ranked for every page, since ranking more
 * candidates could change the order of the earlier items. Nothing is reinforced: that would change the order before the
 * next page, also for items that were not sent.
 */
async function rank(call: TenantCall, { query, userId, namespace, value, wanted }: Ranking): Promise<Found[]> {
  if (query === '') return [];
  const { tenant, principal, response } = call;
  const asked = {
    query,
    k: MAX_RANKED,
    filter: { userIds: [userId], namespace, value },
    minScore: 0,
    perDocument: 0,
    collapseSimilar: false,
    writerShare: 1,
    reinforce: false,
    ...(isPublicRead(principal) ? { isLogged: false } : {}),
  };
  const { hits } = await tenant.query(asked, clientGone(response));
  // Its caller reads no item after those that are wanted, so they need no main memory.
  return hits.slice(0, wanted).map(({ memory, score }) => ({ memory, score }));
}

/** Returns the result of `read`; undefined if it throws EngineError `not_found`. */
async function orUndefined<Result>(read: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof EngineError && error.code === 'not_found') return undefined;
    throw error;
  }
}
