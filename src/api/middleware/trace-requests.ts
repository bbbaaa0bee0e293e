import type { Request, RequestHandler, Response } from 'express';
import type { Tracing } from '../../engine/index.ts';
import { localsOf } from '../reply.ts';
import type { Route } from '../route.ts';

/** What is asked every few seconds by machines, or for as long as somebody watches, would drown the rest. */
const UNTRACED: ReadonlySet<string> = new Set(['/health', '/ready', '/metrics']);

export function isTraced({ path }: Pick<Route, 'path'>): boolean {
  return !UNTRACED.has(path) && !path.endsWith('/events');
}

/**
 * A request as a span, by OpenTelemetry's conventions for HTTP servers; goes on with its caller's trace (`traceparent`). The route's pattern
 * stands for the path, which may hold names.
 */
export function traceRequests(tracing: Tracing, { method, path }: Route, handle: RequestHandler): RequestHandler {
  const verb = method.toUpperCase();
  const attributes = { 'http.request.method': verb, 'http.route': path, 'url.scheme': 'http' };
  return (request: Request, response: Response, next) => {
    const { traceparent } = request.headersDistinct;
    const span = tracing.startRequest(`${verb} ${path}`, {
      // Two of them say nothing.
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
