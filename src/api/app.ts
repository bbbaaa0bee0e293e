import cors from 'cors';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import { EngineError, isBound, runInShare } from '../engine/index.ts';
import { clientAddresses } from '../client-address.ts';
import { createAccessControl, type AccessControl, isReading } from './access-control.ts';
import { watchAdmission } from './watch-admission.ts';
import { answerErrors } from './http-errors.ts';
import { recordRequests } from './middleware/record-requests.ts';
import { refuseForeignPagesWhileOpen } from './middleware/refuse-foreign-pages.ts';
import { refuseStrangersWhileOpen } from './middleware/refuse-strangers.ts';
import { requireHost } from './middleware/require-host.ts';
import { setSecurityHeaders } from './middleware/security-headers.ts';
import { takeRequestTurns } from './middleware/take-request-turns.ts';
import { isTraced, traceRequests } from './middleware/trace-requests.ts';
import { parseQueryString } from './query-string.ts';
import { QUEUE_BOARD_PATH, serveQueueBoard } from './queue-board.ts';
import { takeForRequest } from './take-tokens.ts';
import { localsOf } from './reply.ts';
import type { ApiContext, Call, KeyRoute, Route } from './route.ts';
import { challengeForMcp, refuseOtherMethods } from './mcp/endpoint.ts';
import { isPublicRead } from './routes/public-reads.ts';
import { ROUTES } from './routes.ts';
import { REQUEST_HEADERS } from './schemas/headers.ts';
import { tenantOf } from './tenant-of.ts';
import { withoutStack } from './without-stack.ts';

/**
 * Builds the HTTP API as an Express app; `listen` in server.ts serves it. A request passes the steps from top to
 * bottom: it is recorded for logs and metrics; it waits for its turn if many came at once; while no key is configured,
 * it is refused if it comes from another machine or from a page of another origin; its key is checked; and only then is
 * its body read.
 */
export function createApp(api: ApiContext): Express {
  const { config, logger, metrics } = api.engine;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', parseQueryString);
  // A path has one spelling, so a proxy that hides one hides the route.
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.use(recordRequests(logger, metrics));
  app.use(takeRequestTurns(clientAddresses(config.trustedProxies)));
  app.use(setSecurityHeaders);
  app.use(requireHost);
  app.use(refuseStrangersWhileOpen(api.engine));
  app.use(refuseForeignPagesWhileOpen(api.engine));
  if (config.corsOrigins.length > 0) app.use(allowOrigins(config.corsOrigins));
  app.use(challengeForMcp(api.engine.config));
  const accessControl = createAccessControl(api.engine);
  app.use(QUEUE_BOARD_PATH, serveQueueBoard(api, accessControl));
  for (const route of ROUTES) app[route.method](route.path, serve(route, api, accessControl));
  app.use(refuseOtherMethods);
  app.use(() => {
    throw withoutStack('not_found', 'no such path');
  });
  app.use(answerErrors(logger));
  return app;
}

/**
 * Turns a route into a handler. It admits the caller, finds the tenant, takes rate-limit tokens, and calls the route; a
 * route that anyone may call is called at once. If the handler rejects, Express passes the error to `answerErrors`.
 */
function serve(route: Route, api: ApiContext, accessControl: AccessControl): RequestHandler {
  const handle = async (request: Request, response: Response) => {
    localsOf(response).route = route.path;
    const admit: Call['admit'] = (access, key) =>
      accessControl.admit(request, access, key === undefined ? undefined : () => key);
    if (route.access === 'anyone') return route.handle({ api, request, response, admit });
    const principal = await admit(route.access);
    if (route.keyOnly === true && isPublicRead(principal))
      throw withoutStack('unauthenticated', 'this route asks for a key, as `Authorization: Bearer <key>`');
    const { keyId, tenantId } = principal;
    Object.assign(localsOf(response), { keyId, tenantId });
    if (isBound(principal) && route.forBoundKeys !== true)
      throw new EngineError('forbidden', 'this key is bound to a user or tags, and this route is about more than them');
    const tenant = await tenantOf(api.engine, principal);
    watchAdmission(response, () => accessControl.isStillAdmitted(principal), accessControl.callerOf(principal));
    const call = { api, request, response, admit, principal, tenant };
    takeForRequest(call, route);
    if (api.engine.config.OM_AUDIT === 'all' && recordsReadHere(route))
      await tenant.recordAction(`read.${route.name}`, { reads: 1 });
    return runInShare(principal, () => route.handle(call));
  };
  const { tracing } = api.engine;
  return tracing !== null && isTraced(route) ? traceRequests(tracing, route, handle) : handle;
}

/**
 * Tells whether `serve` records each request to a route as a read in the audit log with `OM_AUDIT=all`: the route can
 * answer with stored texts, and does not record its reads itself.
 */
function recordsReadHere({ access, alsoReads, recordsItsReads }: KeyRoute): boolean {
  return (isReading(access) || alsoReads === true) && recordsItsReads !== true;
}

/**
 * Makes the middleware that sets CORS headers. Keys are sent in headers, so browsers need no credentials mode, and `*`
 * is never combined with it.
 * @param origins allowed origins; with `*` among them, all are allowed
 */
function allowOrigins(origins: readonly string[]): RequestHandler {
  return cors({
    origin: origins.includes('*') ? '*' : [...origins],
    methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: [
      'authorization',
      'x-api-key',
      'x-cairn-tenant',
      'content-type',
      ...Object.keys(REQUEST_HEADERS),
      'mcp-protocol-version',
      'mcp-method',
      'mcp-name',
    ],
    exposedHeaders: [
      'etag',
      'location',
      'retry-after',
      'ratelimit',
      'ratelimit-policy',
      'preference-applied',
      'idempotent-replayed',
      'x-request-id',
      'www-authenticate',
    ],
    maxAge: 600,
  });
}
