import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { openQueuesToShow } from '../engine/adapters/index.ts';
import { DEFAULT_TENANT, type Engine, EngineError, readCredential } from '../engine/index.ts';
import { admit } from './middleware/authenticate.ts';
import { localsOf } from './reply.ts';
import type { ApiContext } from './route.ts';

/** Where the board is, in a browser. */
export const QUEUE_BOARD_PATH = '/admin/queues';

/**
 * bull-board, as a window on BullMQ's queues. It only shows: a job there is a list of ledger rows on their way, and what becomes of a row is
 * decided in the ledger, so that a retry or a removal on the board would say something that is not so. Only GETs are answered, and none
 * changes anything, so another site's page that makes a browser send one gains nothing; nor can it read the answer or frame the page.
 */
export function serveQueueBoard({ engine, stop }: ApiContext): RequestHandler {
  let opening: Promise<Board> | undefined;
  const close = () => void opening?.then((board) => board.close()).catch(() => {});
  stop.addEventListener('abort', close, { once: true });

  /** One that lost its Redis may hold queues that never became ready, and is made anew. */
  async function obtainBoard(queuesAt: NonNullable<Engine['queuesAt']>): Promise<Board> {
    const state = engine.queueState();
    const current = await opening;
    if (current?.isUp() && (state.mode !== 'redis' || state.isUp)) return current;
    if (current !== undefined) {
      current.close();
      opening = undefined;
    }
    if (state.mode === 'redis' && !state.isUp) throw redisIsDown();
    opening ??= openBoard(queuesAt, engine);
    opening.catch(() => (opening = undefined));
    return opening;
  }

  return async (request: Request, response: Response, next: NextFunction): Promise<void> => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return next();
    localsOf(response).route = QUEUE_BOARD_PATH;
    requireOperator(request, response, engine);
    if (engine.queuesAt === null) {
      throw new EngineError(
        'not_found',
        'there are no queues to show without a Redis (REDIS_URL): the ledger has every job, at GET /jobs or with `cairn jobs list`',
      );
    }
    const board = await obtainBoard(engine.queuesAt);
    for (const [name, value] of Object.entries(PAGE_HEADERS)) response.setHeader(name, value);
    board.handle(request, response, next);
  };
}

interface Board {
  readonly handle: RequestHandler;
  isUp(): boolean;
  close(): void;
}

/**
 * The board brings its own scripts and styles; the font that its page asks a host in the internet for is refused with everything else that
 * is not from here. Its inline styles are an animation and an editor's.
 */
const PAGE_HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const;

/** Loaded when the board is first asked for: most processes never are. */
async function openBoard({ redisUrl, prefix }: NonNullable<Engine['queuesAt']>, { logger }: Engine): Promise<Board> {
  const [{ createBullBoard }, { BullMQAdapter }, { ExpressAdapter }, { queues, isUp, close }] = await Promise.all([
    import('@bull-board/api'),
    import('@bull-board/api/bullMQAdapter'),
    import('@bull-board/express'),
    openQueuesToShow({ redisUrl, prefix, logger }),
  ]);
  const server = new ExpressAdapter().setBasePath(QUEUE_BOARD_PATH);
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue, { readOnlyMode: true, allowRetries: false })),
    serverAdapter: server,
    options: { uiConfig: { boardTitle: 'Cairn queues', hideDocsLink: true } },
  });
  // Its own would answer with the message of whatever was thrown.
  server.setErrorHandler((error) => {
    throw isRefusal(error)
      ? new EngineError('invalid', 'the queue board does not understand this request')
      : redisIsDown(error);
  });
  const app = server.getRouter() as RequestHandler & { disable(setting: string): void };
  app.disable('x-powered-by');
  return { handle: app, isUp, close };
}

function isRefusal(error: Error & { readonly statusCode?: number }): boolean {
  return error.statusCode !== undefined && error.statusCode < 500;
}

function redisIsDown(cause?: unknown): EngineError {
  return new EngineError('unavailable', 'Redis does not answer; the ledger has every job: GET /jobs', {
    retryAfterMs: 5_000,
    cause,
  });
}

const BASIC = /^basic +([A-Za-z0-9+/]{1,2048}={0,2}) *$/i;

/**
 * The queues carry the jobs of all tenants, so only an admin of the default one sees them. A browser asks its user for a name and a
 * password (HTTP Basic): the key is the password, whatever the name. Nowhere else is a key taken that way, as a browser sends it again by
 * itself.
 * @throws EngineError `unauthenticated`, `forbidden`
 */
function requireOperator(request: Request, response: Response, engine: Engine): void {
  response.setHeader('www-authenticate', 'Basic realm="Cairn queues: the key is the password", charset="UTF-8"');
  const { authorization = [] } = request.headersDistinct;
  const basic = authorization.length === 1 ? BASIC.exec(authorization[0]!)?.[1] : undefined;
  const { tenantId } = admit(
    basic === undefined ? () => readCredential(request) : () => passwordOf(basic),
    engine,
    'admin',
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
