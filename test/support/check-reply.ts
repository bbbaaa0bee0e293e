import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Express } from 'express';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import { errorsOf } from '../../src/api/openapi/errors.ts';
import type { Media, Route } from '../../src/api/route.ts';
import { ROUTES } from '../../src/api/routes.ts';
import { HTTP_STATUS, problemSchema } from '../../src/api/schemas/problem.ts';

/** A reply as it was sent over the network, with its request's method and target. */
export interface SentReply {
  readonly method: string;
  /** Path and query string of the request. */
  readonly target: string;
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/** Path below which bull-board answers. The API does not describe its replies. */
const QUEUE_BOARD = '/admin/queues';

/**
 * Returns how a reply differs from the description of its route: status, media type, error code, or any field that is
 * missing, wrong or not described. It is undefined if the reply does not differ.
 */
export function problemOfReply(reply: SentReply): string | undefined {
  const { method, target, status } = reply;
  if (method === 'OPTIONS' || target.startsWith(QUEUE_BOARD)) return undefined;
  const problem = differenceOf(reply, routeOf(method, target));
  return problem && `${method} ${target} answered ${status}: ${problem}`;
}

/** Returns the first route whose pattern matches the path, as Express would choose it; undefined if there is none. */
export function routeOf(method: string, target: string): Route | undefined {
  const wanted = method === 'HEAD' ? 'get' : method.toLowerCase();
  const path = target.split('?')[0]!;
  return PATTERNS.find(({ route, pattern }) => route.method === wanted && pattern.test(path))?.route;
}

const PATTERNS = ROUTES.map((route) => ({
  route,
  pattern: new RegExp(`^${route.path.replaceAll(/:\w+/g, '[^/]+').replaceAll('.', '\\.')}$`),
}));

function differenceOf({ method, status, contentType, text }: SentReply, route: Route | undefined): string | undefined {
  const [mediaType] = contentType.split(';');
  const described = route?.replies[status];
  const isHead = method === 'HEAD';
  if (mediaType === 'application/problem+json') return isHead ? undefined : differenceOfProblem(text, status, route);
  // A known path with a method that it does not have.
  if (route === undefined && status === 405 && text === '') return undefined;
  if (route === undefined) return 'no route is described, and it is no problem document';
  if (described === undefined) return 'the status is not described';
  if (isHead) return undefined;
  const isEmpty = described.json === undefined && described.media === undefined;
  if (isEmpty) return text === '' ? undefined : 'no content is described';
  if (mediaType === 'application/json' && described.json !== undefined) return differenceOfJson(text, described.json);
  const media = described.media?.find(({ type }) => type === mediaType);
  return media === undefined ? `the media type ${mediaType} is not described` : differenceOfMedia(text, media);
}

function differenceOfProblem(text: string, status: number, route: Route | undefined): string | undefined {
  const wrong = differenceOfJson(text, problemSchema);
  if (wrong !== undefined) return wrong;
  const problem = problemSchema.parse(JSON.parse(text));
  if (problem.status !== status || HTTP_STATUS[problem.code] !== status)
    return `its status is ${problem.status}, its code ${problem.code}`;
  // Without a route: an unknown path, a stranger without a key, or a query string that cannot be read.
  const described = route === undefined ? ['not_found', 'forbidden', 'invalid'] : [...errorsOf(route).keys()];
  return described.includes(problem.code) ? undefined : `the error ${problem.code} is not described`;
}

function differenceOfMedia(text: string, { type, schema, events }: Media): string | undefined {
  if (type === 'application/x-ndjson') return firstOf(text.split('\n').filter(Boolean), schema);
  if (events === undefined) return undefined;
  const blocks = text.split('\n\n').filter((block) => block !== '' && !block.startsWith(':'));
  for (const block of blocks) {
    const [, name = '', data = ''] = /^(?:id: .*\n)?event: (\w+)\ndata: (.*)$/.exec(block) ?? [];
    const wrong =
      events[name] === undefined ? `the event ${name} is not described` : differenceOfJson(data, events[name]);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function firstOf(lines: readonly string[], schema: z.ZodType): string | undefined {
  return lines.map((line) => differenceOfJson(line, schema)).find((wrong) => wrong !== undefined);
}

function differenceOfJson(text: string, schema: z.ZodType): string | undefined {
  const { error } = schema.safeParse(JSON.parse(text));
  return error && z.prettifyError(error);
}

/** Compares every reply that a server in this process sends with the API description, whichever client requested it. */
export interface ReplyWatch {
  readonly app: Express;
  /**
   * Waits until this request's reply is complete.
   * @throws Error if the reply differs from its description
   */
  requireDescribed(requestId: string | null): Promise<void>;
  /** Differences of replies for which `requireDescribed` was not called, by request id. */
  readonly problems: ReadonlyMap<string, string>;
}

export function watchReplies(app: Express): ReplyWatch {
  const problems = new Map<string, string>();
  const underWay = new Map<string, Promise<void>>();
  const listen = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks = keepChunks(response);
    // While a part of the app is at work, Express leaves the beginning of its path out of the request's own `url`.
    const { method = '', url: target = '' } = request;
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    response.once('close', () => {
      const requestId = String(response.getHeader('x-request-id'));
      // One that broke off was not meant to be whole.
      const problem = response.writableFinished
        ? problemOfReply({ method, target, ...sentBy(response, chunks) })
        : undefined;
      if (problem !== undefined) problems.set(requestId, problem);
      underWay.delete(requestId);
      resolve();
    });
    app(request as never, response as never);
    underWay.set(String(response.getHeader('x-request-id')), closed);
  };
  return {
    app: Object.assign(listen, { request: app.request, response: app.response }) as unknown as Express,
    problems,
    async requireDescribed(requestId) {
      if (requestId === null) return;
      await underWay.get(requestId);
      const problem = problems.get(requestId);
      problems.delete(requestId);
      if (problem !== undefined) throw new Error(problem);
    },
  };
}

/** Returns a list to which every chunk that is written to the response is added. */
function keepChunks(response: ServerResponse): Buffer[] {
  const chunks: Buffer[] = [];
  const keep = (chunk: unknown) => {
    if (typeof chunk === 'string') chunks.push(Buffer.from(chunk));
    else if (chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk));
  };
  const { write, end } = response;
  response.write = function (this: ServerResponse, ...all: unknown[]) {
    keep(all[0]);
    return (write as (...all: unknown[]) => boolean).apply(this, all);
  } as typeof response.write;
  response.end = function (this: ServerResponse, ...all: unknown[]) {
    keep(all[0]);
    return (end as (...all: unknown[]) => ServerResponse).apply(this, all);
  } as typeof response.end;
  return chunks;
}

function sentBy(response: ServerResponse, chunks: readonly Buffer[]) {
  return {
    status: response.statusCode,
    contentType: String(response.getHeader('content-type') ?? ''),
    text: (response.getHeader('content-encoding') === 'gzip'
      ? gunzipSync(Buffer.concat(chunks))
      : Buffer.concat(chunks)
    ).toString('utf8'),
  };
}
