import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { NextFunction, Request, Response } from 'express';
import type { Logger, Metrics } from '../../engine/index.ts';
import { localsOf } from '../reply.ts';

const REQUEST_ID = /^[\w.:-]{1,128}$/;
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** Status in the log for a client that disconnected before its answer was complete, as nginx writes it. */
const CLIENT_CLOSED = 499;
/**
 * Longest time that a client may go on sending a request that was already answered (ms, from the beginning of the
 * request). Then its connection is closed, but not within 5 s of the answer.
 */
const MAX_SENDING_MS = 30_000;
/**
 * Shortest time between an early answer and the close of its connection (ms). An immediate close could destroy the
 * answer before the client has received it.
 */
const MIN_LINGER_MS = 5_000;

/**
 * Makes the first middleware. It gives each request its id, and writes one log line and measures the duration when the
 * request ends. Logs and metrics have the route's pattern, and never the path, the query string, a body or a key.
 */
export function recordRequests(logger: Logger, metrics: Metrics) {
  function onClose(this: Response): void {
    const { requestId, startedAt, route, jobId, traceId } = localsOf(this);
    const ms = performance.now() - startedAt;
    const status = this.writableFinished ? this.statusCode : CLIENT_CLOSED;
    const method = METHODS.has(this.req.method) ? this.req.method : 'other';
    metrics.httpInFlight.dec();
    metrics.httpRequests.inc({ route: countedAs(route) });
    metrics.httpResponses.inc({ status });
    const kind = kindOf(method, route);
    if (kind !== undefined) metrics.httpDurations.observe({ kind }, ms / 1000);
    logger[status >= 500 ? 'info' : 'debug'](
      { route, method, status, ms: Math.round(ms * 10) / 10, requestId, jobId, traceId },
      'request',
    );
    if (!this.req.complete) lingerBriefly(this.req, MAX_SENDING_MS - ms);
  }
  return (request: Request, response: Response, next: NextFunction): void => {
    const locals = localsOf(response);
    const given = request.headers['x-request-id'];
    locals.requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
    locals.startedAt = performance.now();
    locals.route = 'unmatched';
    metrics.httpInFlight.inc();
    response.setHeader('x-request-id', locals.requestId);
    response.on('close', onClose);
    next();
  };
}

/**
 * Returns the value of the label `route` in the metric that counts requests: the first segment of the route's pattern,
 * and two segments below `/memory`. One value for each of more than a hundred routes would make too many metric series.
 * The log has the whole pattern.
 */
function countedAs(route: string): string {
  return /^(?:\/memory)?\/[^/]*/.exec(route)?.[0] ?? route;
}

/**
 * Returns the value of the label `kind` in the histogram of request durations; one value for each route would make
 * hundreds of series. It is undefined for requests that are not measured: event streams, monitoring, the API's
 * documentation and unknown paths.
 */
function kindOf(method: string, route: string): string | undefined {
  if (route.endsWith('/events')) return undefined;
  if (route.startsWith('/memory/add')) return 'add';
  if (route === '/memory/query') return 'query';
  if (route.startsWith('/memory/ingest') || route.startsWith('/documents')) return 'documents';
  if (['/health', '/ready', '/metrics', '/openapi.json', 'unmatched'].includes(route)) return undefined;
  if (route.startsWith('/docs')) return undefined;
  return method === 'GET' || method === 'HEAD' ? 'read' : 'write';
}

/**
 * Closes the connection of a request that was answered while its client still sends the body: after `maxMs`, but after
 * 5 s at the earliest. Nothing happens if the whole request arrives before.
 */
function lingerBriefly(request: Request, maxMs: number): void {
  // Kept, since a request that is destroyed has no socket any more; there may be none already.
  const socket = request.socket as Socket | null;
  if (socket === null) return;
  const timer = setTimeout(() => request.complete || socket.destroy(), Math.max(MIN_LINGER_MS, maxMs));
  timer.unref();
  request.once('close', () => clearTimeout(timer));
}
