import type { Request, Response } from 'express';
import type { z } from 'zod';
import { type Engine, EngineError, type ErrorCode, type Principal, type Role, type Tenant } from '../engine/index.ts';
import { hasBody, readJson } from './read-body.ts';
import { sendJson } from './reply.ts';
import type { ReplyHeader, RequestHeader } from './schemas/headers.ts';
import { parse } from './schemas/parse.ts';
import type { Wire } from './schemas/values.ts';

/**
 * What a route is. A route says everything about itself in one place: who may call it, what it reads, what it answers
 * and an example of each. From that come the types of its handler, the parsing of requests, `GET /openapi.json`, the
 * page at `/docs` and docs/reference/http-api.md, and tests compare every reply with it.
 *
 * To add one: describe its fields in `schemas/`, each with `.describe(…)`; write `route({…})` in the file of its
 * subject in `routes/`, with an `example` for its body and for each reply whose schema has none; put a new file into
 * `ROUTE_GROUPS` of routes.ts. Then `npm run reference` writes the reference anew. Types and tests tell what is
 * missing.
 */

/** What the app is built from. */
export interface ApiContext {
  readonly engine: Engine;
  readonly ready: () => Readiness;
  /** Every registry of the process in Prometheus's text format. */
  readonly metricsText: () => Promise<string>;
  readonly version: string;
  /** Aborted when the server stops: event streams end and waits are cut short. */
  readonly stop: AbortSignal;
}

/** Whether this process should be sent requests, and if not, why: one short reason each, such as `draining`. */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

/**
 * Who may call a route: anyone, the holder of any key, or of a key with at least this role. `OM_PUBLIC_READS` opens
 * `read` routes of the default tenant to everyone, `key` routes never.
 */
export type Access = 'anyone' | 'key' | Role;

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

export interface Call {
  readonly api: ApiContext;
  readonly request: Request;
  readonly response: Response;
}

/** A call whose key was accepted. The tenant comes from the key and from nothing else. */
export interface TenantCall extends Call {
  readonly principal: Principal;
  readonly tenant: Tenant;
}

// ── What a route says of itself ──────────────────────────────────────────────────────────────────────────────────────

/** A body or a reply in another form than JSON. */
export interface Media {
  /** Its media type, such as `application/x-ndjson`. */
  readonly type: string;
  /** Of the whole, or of one line where the type is `application/x-ndjson`. */
  readonly schema: z.ZodType;
  /** Data of the events by their names, where the type is `text/event-stream`. */
  readonly events?: Readonly<Record<string, z.ZodType>>;
  readonly example: unknown;
}

export interface Body<Schema extends z.ZodType = z.ZodType> {
  readonly json: Schema;
  readonly example: z.input<Schema>;
  /** The body may be left out, which is the same as `{}`. */
  readonly optional?: true;
  /** What the fields are, in a word, where they may stand in the query string instead of a body. */
  readonly orQuery?: string;
  readonly media?: readonly Media[];
}

export interface Reply {
  readonly description: string;
  readonly json?: z.ZodType;
  /** Made from the examples of the schema where it is left out. */
  readonly example?: unknown;
  readonly headers?: readonly ReplyHeader[];
  readonly media?: readonly Media[];
}
export type Replies = { readonly [status: number]: Reply };

/** A part of the path: what it is, and an example. */
export interface PathParameter {
  readonly description: string;
  readonly example: string;
}

interface Description<Path extends string, Query extends z.ZodType, Json extends z.ZodType, Answers extends Replies> {
  readonly method: Method;
  /** Express's pattern: `:name` stands for one segment. */
  readonly path: Path;
  /** The operation's name in clients that are made from the description; unique. */
  readonly name: string;
  /** What it does, as one line that begins with a verb. */
  readonly summary: string;
  /** What else a caller should know, as Markdown. */
  readonly description?: string;
  readonly params?: { readonly [Name in PathName<Path>]: PathParameter };
  /** Left out where the query string is not read at all. */
  readonly query?: Query;
  readonly body?: Body<Json>;
  readonly headers?: readonly RequestHeader[];
  readonly replies: Answers;
  /** Errors that it answers besides those of every route, and why. */
  readonly errors?: Readonly<Partial<Record<ErrorCode, string>>>;
}

type PathName<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathName<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** What was read of the request by the route's schemas, and how it is answered. */
interface Parsed<Path extends string, Query extends z.ZodType, Json extends z.ZodType, Answers extends Replies> {
  readonly params: { readonly [Name in PathName<Path>]: string };
  readonly query: z.output<Query>;
  /** @throws EngineError as `readJson` and `parse` do */
  readBody(): Promise<z.output<Json>>;
  /** Answers with JSON, whose shape is checked by the compiler alone. */
  send<Status extends keyof Answers & number>(status: Status, body: JsonOf<Answers[Status]>): void;
}

type JsonOf<Answer extends Reply> = Answer extends { readonly json: infer Schema extends z.ZodType }
  ? Wire<Schema>
  : never;

// ── Routes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface AnyRoute extends Omit<Description<string, z.ZodType, z.ZodType, Replies>, 'params'> {
  readonly params?: Readonly<Record<string, PathParameter>>;
}
export interface OpenRoute extends AnyRoute {
  readonly access: 'anyone';
  readonly handle: (call: Call) => void | Promise<void>;
}
export interface KeyRoute extends AnyRoute {
  readonly access: Exclude<Access, 'anyone'>;
  readonly handle: (call: TenantCall) => void | Promise<void>;
}
export type Route = OpenRoute | KeyRoute;

/** Routes about one subject, which the description of the API shows together. */
export interface RouteGroup {
  readonly name: string;
  readonly description: string;
  readonly routes: readonly Route[];
}

/**
 * A route that asks for a key. Its query string is parsed before the handler is called, its body when the handler reads
 * it.
 */
export function route<
  const Path extends string,
  Query extends z.ZodType,
  Json extends z.ZodType,
  const Answers extends Replies,
>(
  parts: Description<Path, Query, Json, Answers> & {
    readonly access: Exclude<Access, 'anyone'>;
    readonly handle: (call: TenantCall & Parsed<Path, Query, Json, Answers>) => void | Promise<void>;
  },
): KeyRoute {
  return { ...parts, handle: (call) => parts.handle({ ...call, ...readCall(parts, call) }) };
}

/** A route that answers anyone, with or without a key. */
export function openRoute<
  const Path extends string,
  Query extends z.ZodType,
  Json extends z.ZodType,
  const Answers extends Replies,
>(
  parts: Description<Path, Query, Json, Answers> & {
    readonly handle: (call: Call & Parsed<Path, Query, Json, Answers>) => void | Promise<void>;
  },
): OpenRoute {
  return { ...parts, access: 'anyone', handle: (call) => parts.handle({ ...call, ...readCall(parts, call) }) };
}

function readCall<Path extends string, Query extends z.ZodType, Json extends z.ZodType, Answers extends Replies>(
  { query, body }: Description<Path, Query, Json, Answers>,
  { request, response }: Call,
): Parsed<Path, Query, Json, Answers> {
  return {
    params: request.params as Parsed<Path, Query, Json, Answers>['params'],
    query: (query === undefined ? {} : parse(query, request.query)) as z.output<Query>,
    readBody: () => readBody(body, request),
    send: (status, content) => sendJson(response, status, content),
  };
}

async function readBody<Json extends z.ZodType>(
  body: Body<Json> | undefined,
  request: Request,
): Promise<z.output<Json>> {
  if (body === undefined) throw new EngineError('internal', 'this route describes no body');
  return parse(body.json, await readFields(body, request)) as z.output<Json>;
}

async function readFields({ optional, orQuery }: Body, request: Request): Promise<unknown> {
  const isThere = hasBody(request);
  if (orQuery !== undefined) {
    if (isThere && Object.keys(request.query).length > 0)
      throw new EngineError('invalid', `give the ${orQuery} in the query string or in the body, not in both`);
    if (!isThere) return request.query;
  }
  return optional && !isThere ? {} : (await readJson(request)).value;
}
