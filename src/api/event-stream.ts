import { EngineError, isEngineError } from '../engine/index.ts';
import type { TenantCall } from './route.ts';

/** Proxies close a connection on which nothing moves. */
const PING_MS = 15_000;
const MAX_STREAMS = 1_000;

let openStreams = 0;

/** What is watched, as it is right now. */
export interface Watched {
  /** As it stands on the wire. */
  readonly item: object;
  /** Nothing will change any more. */
  readonly hasEnded: boolean;
}

export interface WatchOptions {
  /** One for each thing: all streams of it share what is read. */
  readonly key: string;
  readonly pollMs: number;
  /** Throws `not_found` once it is gone. */
  readonly read: () => Promise<Watched>;
}

/** A thing that is watched: read again and again for all of its streams at once. */
interface Watch {
  readonly listeners: Set<Listener>;
  readonly timer: NodeJS.Timeout;
}

/** Told how it stands, `gone` where it is no more, and `lost` where nobody can say. */
type Listener = (watched: Watched | 'gone' | 'lost') => void;

const watches = new Map<string, Watch>();

/**
 * Something as server-sent events: `state` on connect and at each change, until it ended, was removed (`gone`), the client left or
 * the server stops. It is asked for again and again, since any process may have worked on it.
 * @throws what the first `read` throws; EngineError `unavailable` with too many streams
 */
export async function streamState({ api, response }: TenantCall, options: WatchOptions): Promise<void> {
  const first = await options.read();
  if (response.destroyed) return; // Its client left meanwhile, and nobody would be told of that again.
  if (openStreams >= MAX_STREAMS)
    throw new EngineError('unavailable', `${MAX_STREAMS} event streams are open`, { retryAfterMs: 5_000 });
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
  let sent = '';
  const report: Listener = (watched) => {
    // The file is closed or locked: whoever listens connects again and is then told why.
    if (watched === 'lost') return void response.destroy();
    const isGone = watched === 'gone';
    const data = isGone ? '' : JSON.stringify(watched.item);
    if (data !== sent) response.write(isGone ? 'event: gone\ndata: {}\n\n' : `event: state\ndata: ${data}\n\n`);
    sent = data;
    if (isGone || watched.hasEnded) response.end();
  };
  const end = () => response.end();

  openStreams++;
  const ping = setInterval(() => response.write(': ping\n\n'), PING_MS);
  const leave = listen(options, report);
  api.stop.addEventListener('abort', end);
  response.once('close', () => {
    openStreams--;
    clearInterval(ping);
    leave();
    api.stop.removeEventListener('abort', end);
  });
  report(first);
  if (api.stop.aborted) end();
}

/** @returns what ends it */
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
    if (isReading) return; // A read that takes longer than the time between two is not asked for twice.
    isReading = true;
    const watched = await orGone(read);
    isReading = false;
    for (const listener of listeners) listener(watched);
  };
  const timer = setInterval(() => void tell(), pollMs);
  const watch = { listeners, timer };
  watches.set(key, watch);
  return watch;
}

async function orGone(read: () => Promise<Watched>): Promise<Watched | 'gone' | 'lost'> {
  try {
    return await read();
  } catch (error) {
    return isEngineError(error, 'not_found') ? 'gone' : 'lost';
  }
}
