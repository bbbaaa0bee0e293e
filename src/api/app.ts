import cors from 'cors';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import { EngineError } from '../engine/index.ts';
import { answerErrors } from './http-errors.ts';
import { authenticate, refuseStrangersWhileOpen } from './middleware/authenticate.ts';
import { recordRequests } from './middleware/record-requests.ts';
import { isTraced, traceRequests } from './middleware/trace-requests.ts';
import { parseQueryString } from './query-string.ts';
import { QUEUE_BOARD_PATH, serveQueueBoard } from './queue-board.ts';
import { localsOf } from './reply.ts';
import type { ApiContext, Route } from './route.ts';
import { ROUTES } from './routes.ts';

/**
 * Builds the HTTP API as an Express app; `listen` in server.ts serves it. A request passes the steps from top to
 * bottom: it is recorded, refused if no key is configured and it comes from another machine, checked for its key, and
 * only then is its body read.
 */
export function createApp(api: ApiContext): Express {
  const { config, logger, metrics } = api.engine;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', parseQueryString);
  app.use(recordRequests(logger, metrics));
  app.use(refuseStrangersWhileOpen(api.engine));
  if (config.corsOrigins.length > 0) app.use(allowOrigins(config.corsOrigins));
  app.use(QUEUE_BOARD_PATH, serveQueueBoard(api));
  for (const route of ROUTES) app[route.method](route.path, serve(route, api));
  app.use(() => {
    throw new EngineError('not_found', 'no such path');
  });
  app.use(answerErrors(logger));
  return app;
}

/** Turns a route into a handler. Express passes a rejection of the handler on to `answerErrors`. */
function serve(route: Route, api: ApiContext): RequestHandler {
  const handle = async (request: Request, response: Response) => {
    localsOf(response).route = route.path;
    if (route.access === 'anyone') return route.handle({ api, request, response });
    const principal = authenticate(request, api.engine, route.access);
    return route.handle({ api, request, response, principal, tenant: await api.engine.tenant(principal.tenantId) });
  };
  const { tracing } = api.engine;
  return tracing !== null && isTraced(route) ? traceRequests(tracing, route, handle) : handle;
}

/**
 * Cross-origin headers. Keys are sent in headers, so browsers need no credentials mode, and `*` is never combined with
 * it.
 */
function allowOrigins(origins: readonly string[]): RequestHandler {
  return cors({
    origin: origins.includes('*') ? '*' : [...origins],
    methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: [
      'authorization',
      'x-api-key',
      'content-type',
      'idempotency-key',
      'if-match',
      'prefer',
      'x-request-id',
      'traceparent',
    ],
    exposedHeaders: ['etag', 'location', 'retry-after', 'idempotent-replayed', 'x-request-id'],
    maxAge: 600,
  });
}
