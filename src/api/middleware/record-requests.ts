import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import type { Logger, Metrics } from '../../engine/index.ts';
import { localsOf } from '../reply.ts';

const REQUEST_ID = /^[\w.:-]{1,128}$/;
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** A client that hung up before its answer was complete; nginx's number for it. */
const CLIENT_CLOSED = 499;
/** A client that was answered before it had sent all is cut off so long after its request began (ms) … */
const SENDING_MOST_MS = 30_000;
/** … or so long after its answer, if that is later: closing at once would take the answer from it. */
const LINGER_LEAST_MS = 5_000;

/**
 * The first middleware: gives the request its id, and when it ends, one line in the log and one measurement. They hold the
 * route's pattern and never the path, the query string, a body or a key.
 */
export function recordRequests(logger: Logger, metrics: Metrics) {
  function onClose(this: Response): void {
    const { requestId, startedAt, route, jobId, traceId } = localsOf(this);
    const ms = performance.now() - startedAt;
    const status = this.writableFinished ? this.statusCode : CLIENT_CLOSED;
    const method = METHODS.has(this.req.method) ? this.req.method : 'other';
    metrics.httpInFlight.dec();
    metrics.httpRequests.inc({ route, method });
    metrics.httpResponses.inc({ status });
    const kind = kindOf(method, route);
    if (kind !== undefined) metrics.httpDurations.observe({ kind }, ms / 1000);
    logger[status >= 500 ? 'info' : 'debug'](
      { route, method, status, ms: Math.round(ms * 10) / 10, requestId, jobId, traceId },
      'request',
    );
    if (!this.req.complete) lingerBriefly(this.req, SENDING_MOST_MS - ms);
  }
  return (request: Request, response: Response, next: NextFunction): void => {
    const locals = localsOf(response);
    const given = request.headers['x-request-id'];
    locals.requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
    locals.startedAt = performance.now();
    locals.route = 'unmatched';
    metrics.httpInFlight.inc();
    response.setHeader('x-request-id', locals.requestId);
    response.setHeader('cache-control', 'no-store');
    response.setHeader('x-content-type-options', 'nosniff');
    response.on('close', onClose);
    next();
  };
}

/**
 * What a request is about, for its time: a histogram for every route would be hundreds of series. undefined for what has no time that
 * says anything: streams of events, and what is asked by those who watch. */
function kindOf(method: string, route: string): string | undefined {
  if (route.endsWith('/events')) return undefined;
  if (route.startsWith('/memory/add')) return 'add';
  if (route === '/memory/query') return 'query';
  if (route.startsWith('/memory/ingest') || route.startsWith('/documents')) return 'documents';
  if (['/health', '/ready', '/metrics', '/openapi.json', 'unmatched'].includes(route)) return undefined;
  if (route.startsWith('/docs')) return undefined;
  return method === 'GET' || method === 'HEAD' ? 'read' : 'write';
}

/** Node reads and drops what is left of an answered request; this bounds for how long (ms). */
function lingerBriefly(request: Request, mostMs: number): void {
  const timer = setTimeout(() => request.complete || request.socket.destroy(), Math.max(LINGER_LEAST_MS, mostMs));
  timer.unref();
  request.once('close', () => clearTimeout(timer));
}
