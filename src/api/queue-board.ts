import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { openQueuesToShow } from '../engine/adapters/index.ts';
import { DEFAULT_TENANT, type Engine, EngineError } from '../engine/index.ts';
import type { AccessControl } from './access-control.ts';
import { pageHeaders } from './page-headers.ts';
import { localsOf } from './reply.ts';
import type { ApiContext } from './route.ts';

/** Path of the page that shows BullMQ's queues. */
export const QUEUE_BOARD_PATH = '/admin/queues';

/**
 * Serves bull-board, a page that shows BullMQ's queues. It is read-only. A job of BullMQ is only a list of row numbers
 * of Cairn's own job table on the way to a worker. That table decides what happens to a job, so a retry or a removal on
 * the board would have no effect. Only GET and HEAD requests are answered, and none changes anything, so another site's
 * page gains nothing by making a browser send one.
 */
export function serveQueueBoard({ engine, stop }: ApiContext, accessControl: AccessControl): RequestHandler {
  let opening: Promise<Board> | undefined;
  const close = () => void opening?.then((board) => board.close()).catch(() => {});
  stop.addEventListener('abort', close, { once: true });

  /**
   * Returns the open board. A new board is opened if none is open or if the server of the queues was lost meanwhile,
   * since the old board may hold queues that never became ready.
   * @throws EngineError `unavailable` while that server does not answer
   */
  async function obtainBoard(queuesAt: NonNullable<Engine['queuesAt']>): Promise<Board> {
    const state = engine.queueState();
    const awaited = opening;
    const current = await awaited;
    if (current?.isUp() && (state.mode === 'embedded' || state.isUp)) return current;
    // Another request may have closed it and opened the next one meanwhile.
    if (current !== undefined && opening === awaited) {
      current.close();
      opening = undefined;
    }
    if (state.mode !== 'embedded' && !state.isUp) throw queuesAreDown(queuesAt);
    if (opening !== undefined) return opening;
    const opened = openBoard(queuesAt, engine);
    opened.catch(() => (opening = undefined));
    return (opening = opened);
  }

  return async (request: Request, response: Response, next: NextFunction): Promise<void> => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return next();
    localsOf(response).route = QUEUE_BOARD_PATH;
    await requireOperator(request, response, accessControl);
    if (engine.queuesAt === null) {
      throw new EngineError(
        'not_found',
        'there are no queues to show without REDIS_URL or OM_DATABASE_URL: ' +
          'the ledger has every job, at GET /jobs or with `cairn jobs list`',
      );
    }
    const board = await obtainBoard(engine.queuesAt);
    response.setHeaders(BOARD_HEADERS);
    board.handle(request, response, next);
  };
}

interface Board {
  readonly handle: RequestHandler;
  isUp(): boolean;
  close(): void;
}

/**
 * Headers of the board's page, which loads its own scripts and styles. The page also requests a font from another host,
 * which this policy refuses. Inline styles are allowed for an animation and an editor.
 */
const BOARD_HEADERS = pageHeaders({
  'style-src': "'self' 'unsafe-inline'",
  'img-src': "'self' data:",
  'font-src': "'self'",
  'base-uri': "'self'",
});

/** Loads bull-board and connects to the queues. Its packages are loaded here because most processes never need them. */
async function openBoard(place: NonNullable<Engine['queuesAt']>, { logger }: Engine): Promise<Board> {
  const [{ createBullBoard }, { BullMQAdapter }, { ExpressAdapter }, { queues, isUp, close }] = await Promise.all([
    import('@bull-board/api'),
    import('@bull-board/api/bullMQAdapter'),
    import('@bull-board/express'),
    openQueuesToShow({ place, logger }),
  ]);
  const server = new ExpressAdapter().setBasePath(QUEUE_BOARD_PATH);
  const app = server.getRouter() as RequestHandler & Record<'enable' | 'disable', (setting: string) => void>;
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.disable('x-powered-by');
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue, { readOnlyMode: true, allowRetries: false })),
    serverAdapter: server,
    options: { uiConfig: { boardTitle: 'Cairn queues', hideDocsLink: true } },
  });
  // The board's own error handler would answer with the message of whatever was thrown.
  server.setErrorHandler((error) => {
    throw isRefusal(error)
      ? new EngineError('invalid', 'the queue board does not understand this request')
      : queuesAreDown(place, error);
  });
  return { handle: app, isUp, close };
}

function isRefusal(error: Error & { readonly statusCode?: number }): boolean {
  return error.statusCode !== undefined && error.statusCode < 500;
}

function queuesAreDown({ kind }: NonNullable<Engine['queuesAt']>, cause?: unknown): EngineError {
  const server = kind === 'redis' ? 'Redis' : 'PostgreSQL';
  return new EngineError('unavailable', `${server} does not answer; the ledger has every job: GET /jobs`, {
    retryAfterMs: 5_000,
    cause,
  });
}

const BASIC = /^basic +([A-Za-z0-9+/]{1,2048}={0,2}) *$/i;

/**
 * Throws unless the caller is an admin of the default tenant, because the queues carry the jobs of all tenants. A
 * browser asks its user for a name and a password (HTTP Basic): the password is the key, and the name is ignored. No
 * other path accepts a key this way, because a browser repeats it in later requests by itself.
 * @throws EngineError `unauthenticated`, `forbidden`, and whatever else `AccessControl.admit` throws
 */
async function requireOperator(request: Request, response: Response, accessControl: AccessControl): Promise<void> {
  response.setHeader('www-authenticate', 'Basic realm="Cairn queues: the key is the password", charset="UTF-8"');
  const { authorization = [] } = request.headersDistinct;
  const basic = authorization.length === 1 ? BASIC.exec(authorization[0]!)?.[1] : undefined;
  const { tenantId } = await accessControl.admit(
    request,
    'admin',
    basic === undefined ? undefined : () => passwordOf(basic),
  );
  response.removeHeader('www-authenticate');
  if (tenantId !== DEFAULT_TENANT) {
    throw new EngineError(
      'forbidden',
      'the queues are those of all tenants: this needs an admin key of the default tenant',
    );
  }
}

function passwordOf(basic: string): string {
  const text = Buffer.from(basic, 'base64').toString('utf8');
  return text.slice(text.indexOf(':') + 1);
}
