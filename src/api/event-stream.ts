import { z } from 'zod';
import { type Engine, EngineError, isEngineError } from '../engine/index.ts';
import { localsOf } from './reply.ts';
import type { Replies, TenantCall } from './route.ts';

/** Time between the comments that keep a stream open (ms): proxies close a connection on which nothing is sent. */
const PING_MS = 15_000;
/** Greatest number of event streams that this process keeps open at once. */
const MAX_STREAMS = 1_000;

let openStreams = 0;

/** Schema of the data of the event `gone`. It ends a stream whose item was removed, or whose caller lost access. */
export const goneEvent = z.strictObject({
  reason: z
    .literal('unauthenticated')
    .optional()
    .describe('The key was revoked or has expired; left out if the watched job or document was removed.'),
});

/** State of a watched item, such as a job, as it was read. */
interface Watched {
  /** The item in the form of the API. */
  readonly item: object;
  /** True if the item has reached a state that can no longer change. */
  readonly hasEnded: boolean;
}

export interface WatchOptions {
  /**
   * Name of the item, unique in the process. All streams with the same name whose keys have the same bounds (user and
   * tags) share one watch, which reads the item by the `read`, and at the interval, of the first stream.
   */
  readonly key: string;
  /** Time between two reads of the item (ms). */
  readonly pollMs: number;
  /** The item as the caller has just read it; left out, it is read at once. */
  readonly first?: Watched;
  /** Reads the item; throws EngineError `not_found` once it no longer exists. */
  readonly read: () => Promise<Watched>;
}

/** One item, such as a job, that is read at an interval on behalf of all streams that watch it. */
interface Watch {
  readonly listeners: Set<Listener>;
  readonly timer: NodeJS.Timeout;
}

/**
 * Called with the item's state at each read; with `gone` if the item no longer exists; with `lost` if reading it
 * failed.
 */
type Listener = (watched: Watched | 'gone' | 'lost') => void;

const watches = new Map<string, Watch>();

/**
 * Declares the reply of a route that calls `streamState`: the events `state`, whose data have the given schema, and
 * `gone`.
 */
export function stateEvents(state: z.ZodType, example: { readonly id: string; readonly state: string }): Replies {
  return {
    200: {
      description: 'The events.',
      media: [
        {
          type: 'text/event-stream',
          schema: z.string(),
          events: { state, gone: goneEvent },
          example: `event: state\ndata: ${JSON.stringify(example)}\n\n`,
        },
      ],
    },
  };
}

/**
 * Streams the state of an item as server-sent events: the event `state` at once and at each change. The stream ends
 * when the item can no longer change, is removed (event `gone`), or cannot be read, when the caller's key is no longer
 * valid (`gone` with a reason), and when the client leaves or the server stops. The item is read at an interval, since
 * any process may change it. The promise resolves once the stream has begun, not at its end.
 * @throws what the first `read` throws; EngineError `unavailable` if 1,000 streams are open in this process, or as many
 *   as the tenant may have
 */
export async function streamState(call: TenantCall, options: WatchOptions): Promise<void> {
  const { principal, response } = call;
  const { first = await options.read() } = options;
  if (response.destroyed) return; // The client left meanwhile: `close` was emitted and is not emitted again.
  const closed = openStream(call);
  let sent = '';
  const report: Listener = (watched) => {
    if (response.writableEnded) return;
    // The tenant's file is closed or locked. The client connects again, and the answer then says why.
    if (watched === 'lost') return void response.destroy();
    const isGone = watched === 'gone';
    const data = isGone ? '' : JSON.stringify(watched.item);
    if (data !== sent) response.write(isGone ? 'event: gone\ndata: {}\n\n' : `event: state\ndata: ${data}\n\n`);
    sent = data;
    if (isGone || watched.hasEnded) response.end();
  };
  // Callers with other bounds do not share a watch, since a watch reads within the bounds of its first caller.
  const within = JSON.stringify([principal.userId, principal.tags]);
  const leave = listen({ ...options, key: `${options.key} ${within}` }, report);
  closed.addEventListener('abort', leave);
  report(first);
  if (call.api.stop.aborted) response.end();
}

/**
 * Begins a reply of server-sent events. A comment every 15 s keeps the connection open. The reply ends with the event
 * `gone` once the caller's key is no longer valid, and without an event when the server stops.
 * The reply to HEAD ends at once.
 * @returns a signal that aborts when the stream is closed, by either side
 * @throws EngineError `unavailable` if 1,000 streams are open in this process, or as many as the tenant may have
 */
export function openStream({ api, response, tenant }: TenantCall): AbortSignal {
  if (openStreams >= MAX_STREAMS)
    throw new EngineError('unavailable', `${MAX_STREAMS} event streams are open`, { retryAfterMs: 5_000 });
  const leaveShare = takeShare(api.engine, tenant.id);
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
  response.flushHeaders();
  openStreams++;
  const closed = new AbortController();
  const end = () => response.end();
  // An ended reply stays open until its client has read it, and a write to it would be an error that nobody catches.
  const ping = setInterval(() => response.writableEnded || response.write(': ping\n\n'), PING_MS);
  localsOf(response).onAdmissionLost = () => {
    if (response.writableEnded) response.destroy();
    else response.end('event: gone\ndata: {"reason":"unauthenticated"}\n\n');
  };
  api.stop.addEventListener('abort', end);
  response.once('close', () => {
    openStreams--;
    leaveShare();
    clearInterval(ping);
    api.stop.removeEventListener('abort', end);
    closed.abort();
  });
  // Its client has the whole answer with the headers, and sends the next request on the connection.
  if (response.req.method === 'HEAD') response.end();
  return closed.signal;
}

/**
 * Counts a stream against the limit of its tenant (`event_streams`), so that no tenant can take all streams.
 * @returns a function that ends the count
 * @throws EngineError `unavailable` if the tenant has reached its limit
 */
function takeShare({ control, metrics, streams }: Engine, tenantId: string): () => void {
  const share = control.limits.inForce({ tenantId }).event_streams;
  const leave = streams.take(tenantId, share);
  if (leave !== undefined) return leave;
  metrics.limitedRequests.inc({ limit: 'event_streams' });
  throw new EngineError('unavailable', `this tenant has its share of ${share} event streams open`, {
    retryAfterMs: 5_000,
  });
}

/**
 * Adds a listener to the watch of an item. The first listener starts the watch.
 * @returns a function that removes the listener; removing the last listener ends the watch
 */
function listen(options: WatchOptions, listener: Listener): () => void {
  const { key } = options;
  const watch = watches.get(key) ?? startWatch(options);
  watch.listeners.add(listener);
  return () => {
    watch.listeners.delete(listener);
    if (watch.listeners.size > 0) return;
    clearInterval(watch.timer);
    watches.delete(key);
  };
}

function startWatch({ key, pollMs, read }: WatchOptions): Watch {
  const listeners = new Set<Listener>();
  let isReading = false;
  const tell = async () => {
    if (isReading) return; // A read may take longer than the interval; only one runs at a time.
    isReading = true;
    const watched = await readOrGone(read);
    isReading = false;
    for (const listener of listeners) listener(watched);
  };
  const timer = setInterval(() => void tell(), pollMs);
  const watch = { listeners, timer };
  watches.set(key, watch);
  return watch;
}

async function readOrGone(read: () => Promise<Watched>): Promise<Watched | 'gone' | 'lost'> {
  try {
    return await read();
  } catch (error) {
    return isEngineError(error, 'not_found') ? 'gone' : 'lost';
  }
}
