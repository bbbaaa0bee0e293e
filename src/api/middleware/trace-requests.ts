import type { Request, RequestHandler, Response } from 'express';
import type { Tracing } from '../../engine/index.ts';
import { localsOf } from '../reply.ts';
import type { Route } from '../route.ts';

/** Paths that monitoring requests every few seconds. Their traces would hide all others. */
const UNTRACED: ReadonlySet<string> = new Set(['/health', '/ready', '/metrics']);

/** Tells whether requests to a route are traced: all are, except those of monitoring and event streams. */
export function isTraced({ path }: Pick<Route, 'path'>): boolean {
  return !UNTRACED.has(path) && !path.endsWith('/events');
}

/**
 * Wraps a handler so that each request is recorded as a span, by OpenTelemetry's conventions for HTTP servers. The span
 * continues the caller's trace (`traceparent`). It has the route's pattern instead of the path, which may contain
 * names.
 */
export function traceRequests(tracing: Tracing, { method, path }: Route, handle: RequestHandler): RequestHandler {
  const verb = method.toUpperCase();
  const attributes = { 'http.request.method': verb, 'http.route': path, 'url.scheme': 'http' };
  return (request: Request, response: Response, next) => {
    const { traceparent } = request.headersDistinct;
    const span = tracing.startRequest(`${verb} ${path}`, {
      // Two headers contradict each other, so neither counts.
      traceparent: traceparent?.length === 1 ? traceparent[0] : undefined,
      attributes,
    });
    localsOf(response).traceId = span.traceId;
    response.once('close', () => {
      const { statusCode } = response;
      span.set({ 'http.response.status_code': statusCode });
      if (statusCode >= 500) span.fail(String(statusCode));
      else if (!response.writableFinished) span.fail('client_closed');
      span.end();
    });
    return span.run(() => handle(request, response, next));
  };
}
