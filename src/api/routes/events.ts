import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { type EventQuery, isEngineError } from '../../engine/index.ts';
import { eventItem, readStreamPage, sharedStreamPage } from '../event-pages.ts';
import { goneEvent, openStream } from '../event-stream.ts';
import { nextLook } from '../next-look.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import { createTurnLine } from '../turn-line.ts';
import { EVENT_EXAMPLE, eventPage, eventSchema, eventsQuery, LATEST, type EventsQuery } from '../schemas/events.ts';

/**
 * Number of reads in a row that may fail and be repeated before a stream ends, and the pause after the first of them
 * (ms); each further pause is as much longer.
 */
const [MOST_FAILURES, FAILURE_MS] = [10, 500];
/** Greatest number of events that a stream reads at once. */
const STREAM_PAGE = 100;
/** Queue of the streams that wait for their turn to write a page: one look may wake a thousand of them. */
const writers = createTurnLine();

/** Route of the change feed. */
export const eventRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/events',
    name: 'listEvents',
    access: 'read',
    forBoundKeys: true,
    summary: 'Lists what happened, in the order of the commits, or streams it as it happens',
    description:
      'Each change of a memory, document or job leaves an event in the commit that makes it, so a reader who follows ' +
      '`cursor` misses nothing. Events hold ids and no content. What happened to a memory that was erased since is ' +
      'left out: its erasure is told. Parts of documents have no events of their own. With `Accept: ' +
      'text/event-stream` the reply is a stream of server-sent events `change`, each with its cursor as `id`; it ' +
      'goes on behind `Last-Event-ID` or `cursor` and ends with `gone` if the key is revoked. A comment every 15 s ' +
      'keeps it open.',
    headers: ['last-event-id'],
    query: eventsQuery,
    replies: {
      200: {
        description: 'A page of events, or the stream.',
        json: eventPage,
        media: [
          {
            type: 'text/event-stream',
            schema: z.string(),
            events: { change: eventSchema, gone: goneEvent },
            example: `id: ${EVENT_EXAMPLE.cursor}\nevent: change\ndata: ${JSON.stringify(EVENT_EXAMPLE)}\n\n`,
          },
        ],
      },
    },
    errors: {
      conflict:
        'Events behind the cursor are no longer kept, so list what there is and follow from `latest`; or the feed is ' +
        'switched off (`OM_EVENTS`).',
    },
    async handle(call) {
      const { tenant, request, query, send } = call;
      if (request.accepts(['application/json', 'text/event-stream']) === 'text/event-stream') {
        return streamEvents(call, query);
      }
      const page = await tenant.listEvents(await toEventQuery(call, query));
      send(200, { items: page.events.map(eventItem), cursor: page.cursor, has_more: page.hasMore });
    },
  }),
];

async function toEventQuery(
  { tenant }: TenantCall,
  { cursor, limit, kinds, user_id: userId }: EventsQuery,
): Promise<EventQuery> {
  return { cursor: cursor === LATEST ? await tenant.newestEvent() : cursor, limit, kinds, userId };
}

/**
 * Streams events as they are committed, after the cursor of the request. Every 200 ms the newest cursor is read once
 * for all streams of a tenant, and a stream reads events only if that has changed. Streams that wake together share the
 * pages that they have in common, and write them in turns. A stream waits for a client that reads slowly. If the cursor
 * is no longer kept, the feed is switched off or reads keep failing, the connection is closed.
 * @throws what the first read throws, such as EngineError `conflict` if the cursor is not kept or there is no feed, and
 *   what `openStream` throws; later nothing
 */
async function streamEvents(call: TenantCall, query: EventsQuery): Promise<void> {
  const { tenant, request, response } = call;
  const given = request.get('last-event-id') ?? query.cursor;
  let wanted = await toEventQuery(call, { ...query, cursor: given, limit: STREAM_PAGE });
  let page = await readStreamPage(call, wanted);
  if (response.destroyed) return;
  const closed = openStream(call);
  /** Cursor of the newest event at the last look; undefined before the first. */
  let newest: string | undefined;
  try {
    for (;;) {
      if (page.bytes.length > 0) await writers.wait(tenant.id);
      // The client may have left, its key may have been revoked, or the server may stop, while the events were read.
      if (closed.aborted || response.writableEnded) return;
      if (page.bytes.length > 0 && !response.write(page.bytes)) await once(response, 'drain', { signal: closed });
      wanted = { ...wanted, cursor: page.cursor };
      if (!page.hasMore) newest = await untilMoved(call, page.cursor, closed);
      if (call.api.stop.aborted) response.end();
      if (closed.aborted || response.writableEnded) return;
      const read = () => (newest === undefined ? readStreamPage(call, wanted) : sharedStreamPage(call, wanted, newest));
      page = await whenAvailable(read, closed);
    }
  } catch {
    // The client left, the feed was switched off, or the cursor fell behind what is kept. A client that connects again
    // is told which.
    response.destroy();
  }
}

/**
 * Waits until the newest event of the tenant is another than that of the cursor, or the stream has to end. It looks
 * every 200 ms.
 * @returns the cursor of the newest event; undefined if the stream has to end
 */
async function untilMoved(
  { tenant, api }: TenantCall,
  cursor: string,
  closed: AbortSignal,
): Promise<string | undefined> {
  while (!closed.aborted && !api.stop.aborted) {
    const newest = await whenAvailable(() => nextLook(api.engine, tenant.id), closed);
    if (newest !== cursor) return newest;
  }
  return undefined;
}

/**
 * Calls `read`, and calls it again while it throws `unavailable`, because readers are busy or the database is away: at
 * most 10 further times, after pauses of 0.5 s, 1 s, 1.5 s and so on.
 * @throws the last error; AbortError if `closed` aborts
 */
async function whenAvailable<T>(read: () => Promise<T>, closed: AbortSignal): Promise<T> {
  for (let failures = 0; ;) {
    try {
      return await read();
    } catch (error) {
      if (!isEngineError(error, 'unavailable') || failures >= MOST_FAILURES) throw error;
      failures += 1;
      await pause(FAILURE_MS * failures, undefined, { signal: closed });
    }
  }
}
