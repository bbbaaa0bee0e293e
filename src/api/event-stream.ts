import { EngineError, isEngineError } from '../engine/errors.ts';
import type { TenantCall } from './route.ts';

const POLL_MS = 100;
/** Proxies close a connection on which nothing moves. */
const PING_EVERY_POLLS = 150;
const MAX_STREAMS = 1_000;

let openStreams = 0;

/** What is watched, as it is right now. */
export interface Watched {
  /** As it stands on the wire. */
  readonly item: object;
  /** Nothing will change any more. */
  readonly hasEnded: boolean;
}

/**
 * Something as server-sent events: `state` on connect and at each change, until it ended, was removed (`gone`), the client left or
 * the server stops. It is asked for again and again, since any process may have worked on it.
 * @param read throws `not_found` once it is gone
 * @throws what the first `read` throws; EngineError `unavailable` with too many streams
 */
export function streamState({ api, response }: TenantCall, read: () => Watched): void {
  const first = read();
  if (openStreams >= MAX_STREAMS)
    throw new EngineError('unavailable', `${MAX_STREAMS} event streams are open`, { retryAfterMs: 5_000 });
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
  let polls = 0;
  let sent = '';
  const report = (watched: Watched | undefined) => {
    const data = watched === undefined ? '' : JSON.stringify(watched.item);
    if (data !== sent)
      response.write(watched === undefined ? 'event: gone\ndata: {}\n\n' : `event: state\ndata: ${data}\n\n`);
    sent = data;
    if (watched === undefined || watched.hasEnded) response.end();
  };
  const poll = () => {
    if (++polls % PING_EVERY_POLLS === 0) response.write(': ping\n\n');
    try {
      report(orGone(read));
    } catch {
      // The file is closed or locked: whoever listens connects again and is then told why.
      response.destroy();
    }
  };
  const end = () => response.end();

  openStreams++;
  const timer = setInterval(poll, POLL_MS);
  api.stop.addEventListener('abort', end);
  response.once('close', () => {
    openStreams--;
    clearInterval(timer);
    api.stop.removeEventListener('abort', end);
  });
  report(first);
  if (api.stop.aborted) end();
}

function orGone(read: () => Watched): Watched | undefined {
  try {
    return read();
  } catch (error) {
    if (isEngineError(error, 'not_found')) return undefined;
    throw error;
  }
}
