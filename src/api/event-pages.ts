import { LRUCache } from 'lru-cache';
import type { EventQuery, FeedEvent } from '../engine/index.ts';
import { PAGE_READER } from './next-look.ts';
import type { TenantCall } from './route.ts';
import { tenantOf } from './tenant-of.ts';

/** Time for which a page is kept, from the end of its read (ms): the interval between two looks for new events. */
const KEPT_MS = 200;
/** Greatest number of pages that are kept. Each has about 20 KB. */
const MAX_PAGES = 64;

/** A page of events in the form in which streams send it. */
export interface StreamPage {
  /** The events as server-sent events, in UTF-8; empty if the page has none. */
  readonly bytes: Buffer;
  readonly cursor: string;
  readonly hasMore: boolean;
}

/** Pages of each engine that streams have read in the last 200 ms, or are reading. */
const pages = new WeakMap<object, LRUCache<string, Promise<StreamPage>>>();

/**
 * Reads a page of events for a stream, where the tenant is now.
 * @param reader name under which the read takes turns with the tenant's other reads; by default the id of the caller's
 *   key
 * @throws what `tenantOf` and `listEvents` throw
 */
export async function readStreamPage(
  { api, principal }: Pick<TenantCall, 'api' | 'principal'>,
  query: EventQuery,
  reader: string = principal.keyId,
): Promise<StreamPage> {
  const tenant = (await tenantOf(api.engine, principal)).as(reader);
  const { events, cursor, hasMore } = await tenant.listEvents(query);
  return { bytes: Buffer.from(events.map(toText).join('')), cursor, hasMore };
}

/**
 * Reads a page of events for a stream which a look for new events woke. Streams of a tenant that the same look woke
 * share the page, if their queries and the bounds of their keys are equal: it is read, encoded and held once for all of
 * them, in the name of none of their keys. A page is read after the look, so it has the events that the look found, up
 * to the limit of the query.
 * @param newest what the look returned: the cursor of the newest event
 * @throws what `tenantOf` and `listEvents` throw
 */
export function sharedStreamPage(
  call: Pick<TenantCall, 'api' | 'tenant' | 'principal'>,
  query: EventQuery,
  newest: string,
): Promise<StreamPage> {
  const { principal, tenant, api } = call;
  let ofEngine = pages.get(api.engine);
  if (ofEngine === undefined) {
    ofEngine = new LRUCache({ max: MAX_PAGES, ttl: KEPT_MS, ttlAutopurge: true });
    pages.set(api.engine, ofEngine);
  }
  const { cursor, limit, kinds, userId } = query;
  const bounds = [principal.userId ?? null, principal.tags ?? null];
  const key = JSON.stringify([tenant.id, bounds, cursor ?? null, limit, kinds ?? null, userId ?? null, newest]);
  const known = ofEngine.get(key);
  if (known !== undefined) return known;
  const page = readStreamPage(call, query, PAGE_READER);
  ofEngine.set(key, page, { ttl: 0 });
  page.then(
    () => ofEngine.set(key, page),
    () => ofEngine.delete(key),
  );
  return page;
}

function toText(event: FeedEvent): string {
  return `id: ${event.cursor}\nevent: change\ndata: ${JSON.stringify(eventItem(event))}\n\n`;
}

/** Returns an event in the form of the API. */
export const eventItem = ({ cursor, kind, at, subject, userId, standingId }: FeedEvent) => ({
  cursor,
  kind,
  at,
  id: subject,
  user_id: userId,
  ...(standingId === undefined ? {} : { standing_id: standingId }),
});
