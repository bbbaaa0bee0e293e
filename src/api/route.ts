/**
 * Types and constructors of routes. A route declares everything about itself in one place: who may call it, what it
 * reads, what it answers, and an example of each. From this declaration come the types of its handler, the parsing of
 * requests, `GET /openapi.json`, the page at `/docs` and docs/reference/http-api.md; tests compare every reply with it.
 *
 * To add a route: describe its fields in `schemas/`, each with `.describe(…)`; write `route({…})` in the file of its
 * subject in `routes/`, with an `example` for its body and for each reply whose schema has none; add a new file to
 * `ROUTE_GROUPS` of routes.ts. Then run `npm run reference` to write the reference. Types and tests report what is
 * missing.
 */
import type { Request, Response } from 'express';
import type { z } from 'zod';
import type { Activity } from '../activity.ts';
import {
  type Bounds,
  type Engine,
  EngineError,
  type ErrorCode,
  type Holder,
  type RateClass,
  requireOwnUser,
  type Role,
  type Tenant,
} from '../engine/index.ts';
import { hasBody, readJson } from './read-body.ts';
import { sendJson } from './reply.ts';
import type { ReplyHeader, RequestHeader } from './schemas/headers.ts';
import { parse } from './schemas/parse.ts';
import type { Wire } from './schemas/values.ts';

/** Everything that handlers of routes use. */
export interface ApiContext {
  readonly engine: Engine;
  readonly ready: () => Readiness;
  /** Renders every metrics registry of the process in Prometheus's text format. */
  readonly metricsText: () => Promise<string>;
  /** Tells what the whole service did within the last hour. */
  readonly activity: () => Promise<Activity>;
  readonly version: string;
  /** Aborts when the server stops: event streams end and waits are cut short. */
  readonly stop: AbortSignal;
}

/**
 * Whether this process should be sent requests; if not, `reasons` holds short reasons such as `draining`, else it is
 * empty.
 */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

/**
 * Who may call a route: anyone, whoever may read metrics (`judgeMetricsReader`), or the holder of a key with at least
 * this role. `read or add` admits every role; a key with the role `add` finds there only what it wrote itself
 * (`addOnlyTenant`). `OM_PUBLIC_READS` opens the
 * routes of the default tenant with `read` or `read or add` to everyone.
 */
export type Access = 'anyone' | 'metrics' | Role | 'read or add';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

export interface Call {
  readonly api: ApiContext;
  readonly request: Request;
  readonly response: Response;
  /**
   * Identifies the caller, as `Doorkeeper.admit` does; routes that anyone may call ask here what to show.
   * @param key a key that the request carries in another place than its headers
   */
  readonly admit: (access: Exclude<Access, 'anyone'>, key?: string) => Promise<Holder>;
}

/**
 * A call whose key was accepted. The key determines the tenant, of several with the header `x-cairn-tenant`. For a key
 * that is bound to a user or tags, `tenant` is the view of `boundTenant`.
 */
export interface TenantCall extends Call {
  readonly principal: Holder;
  readonly tenant: Tenant;
}

// ── Declaration of a route ───────────────────────────────────────────────────────────────────────────────────────────

/** A body or a reply in a media type other than JSON. */
export interface Media {
  /** Media type, such as `application/x-ndjson`. */
  readonly type: string;
  /** Schema of the whole content, or of one line if the type is `application/x-ndjson`. */
  readonly schema: z.ZodType;
  /** Schemas of the events' data by event name, if the type is `text/event-stream`. */
  readonly events?: Readonly<Record<string, z.ZodType>>;
  readonly example: unknown;
}

export interface Body<Schema extends z.ZodType = z.ZodType> {
  readonly json: Schema;
  readonly example: z.input<Schema>;
  /** The body may be left out, which is the same as `{}`. */
  readonly optional?: true;
  /**
   * Word for the fields in an error message, such as `filter`, if they may be given in the query string instead of a
   * body.
   */
  readonly orQuery?: string;
  readonly media?: readonly Media[];
}

export interface Reply {
  readonly description: string;
  readonly json?: z.ZodType;
  /** Example of the reply; made from the examples of the schema if left out. */
  readonly example?: unknown;
  readonly headers?: readonly ReplyHeader[];
  readonly media?: readonly Media[];
}
export type Replies = { readonly [status: number]: Reply };

/** A parameter in the path. */
interface PathParameter {
  readonly description: string;
  readonly example: string;
}

interface Description<Path extends string, Query extends z.ZodType, Json extends z.ZodType, Answers extends Replies> {
  readonly method: Method;
  /** Path pattern of Express: `:name` stands for one segment. */
  readonly path: Path;
  /** Unique name of the operation; clients generated from the API description use it. */
  readonly name: string;
  /** One line that begins with a verb and says what the route does. */
  readonly summary: string;
  /** Further information for callers, as Markdown. */
  readonly description?: string;
  readonly params?: { readonly [Name in PathName<Path>]: PathParameter };
  /** Schema of the query string; left out if the query string is not read. */
  readonly query?: Query;
  readonly body?: Body<Json>;
  readonly headers?: readonly RequestHeader[];
  readonly replies: Answers;
  /**
   * Whether a second request has no second effect, so that a client may send a request again whose reply got lost. Left
   * out, every method but POST may be repeated.
   */
  readonly repeatable?: boolean;
  /** What the request spends of its key's rate limits. */
  readonly limited?: readonly RateClass[];
  /** Meaning of errors that are specific to this route, by code. */
  readonly errors?: Readonly<Partial<Record<ErrorCode, string>>>;
}

type PathName<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathName<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** A request as the route's schemas parsed it, and the function that answers it. */
interface Parsed<Path extends string, Query extends z.ZodType, Json extends z.ZodType, Answers extends Replies> {
  readonly params: { readonly [Name in PathName<Path>]: string };
  readonly query: z.output<Query>;
  /** Reads and parses the body, once. Throws what `readJson` and `parse` throw. */
  readBody(): Promise<z.output<Json>>;
  /** Answers with JSON. Only the compiler checks its shape. */
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
  readonly forBoundKeys?: true;
  readonly recordsItsReads?: true;
  readonly handle: (call: TenantCall) => void | Promise<void>;
}
export type Route = OpenRoute | KeyRoute;

/** Routes about one subject; the API description shows them together. */
export interface RouteGroup {
  readonly name: string;
  readonly description: string;
  readonly routes: readonly Route[];
}

/**
 * Declares a route that needs a key. The query string is parsed before the handler is called, the body when the handler
 * reads it.
 */
export function route<
  const Path extends string,
  Query extends z.ZodType,
  Json extends z.ZodType,
  const Answers extends Replies,
>(
  parts: Description<Path, Query, Json, Answers> & {
    readonly access: Exclude<Access, 'anyone'>;
    /**
     * Set if the route reads and writes memories through `tenant` alone, which stays within the bounds of a key that is
     * bound to a user or tags. Other routes refuse bound keys.
     */
    readonly forBoundKeys?: true;
    /** Set if the handler tells the audit log what was read, where that holds reads; by default the route is told. */
    readonly recordsItsReads?: true;
    readonly handle: (call: TenantCall & Parsed<Path, Query, Json, Answers>) => void | Promise<void>;
  },
): KeyRoute {
  return { ...parts, handle: (call) => parts.handle({ ...call, ...readCall(parts, call) }) };
}

/** Declares a route that answers anyone, with or without a key. */
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
  { request, response, principal = {} }: Call & { readonly principal?: Bounds },
): Parsed<Path, Query, Json, Answers> {
  const own = <Value>(named: Value): Value => {
    requireOwnUser(principal, userNamedBy(named));
    return named;
  };
  return {
    params: request.params as Parsed<Path, Query, Json, Answers>['params'],
    query: own((query === undefined ? {} : parse(query, request.query)) as z.output<Query>),
    readBody: async () => own(await readBody(body, request)),
    send: (status, content) => sendJson(response, status, content),
  };
}

/** Returns the `user_id` of a parsed query string or body; undefined if it names nobody in particular. */
function userNamedBy(value: unknown): string | undefined {
  const named = (value as { readonly user_id?: unknown } | null | undefined)?.user_id;
  return typeof named === 'string' && named !== '' ? named : undefined;
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
