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
import { MAX_JSON_NAMES, MAX_JSON_VALUES } from './check-json-text.ts';
import { hasBody, readJson } from './read-body.ts';
import { sendJson } from './reply.ts';
import type { ReplyHeader, RequestHeader } from './schemas/headers.ts';
import { parse } from './schemas/parse.ts';
import type { Wire } from './schemas/values.ts';

/** Everything that handlers of routes use. */
export interface ApiContext {
  readonly engine: Engine;
  readonly ready: () => Readiness;
  /** Returns all metrics of the service in Prometheus' text format. */
  readonly metricsText: () => Promise<string>;
  /** Returns the activity of the whole service within the last hour. */
  readonly activity: () => Promise<Activity>;
  readonly version: string;
  /**
   * Aborts when the server stops. Event streams then end, and requests that wait for background work are answered at
   * once.
   */
  readonly stop: AbortSignal;
}

/**
 * Whether this process should be sent requests. If not, `reasons` holds short reasons such as `draining`; else it is
 * empty.
 */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

/**
 * Who may call a route: anyone, whoever may read metrics (`judgeMetricsReader`), or the holder of a key with this role
 * or one that includes it: `write` includes `read` and `add`, and `admin` all. `read or add` admits every role; a key
 * with the role `add` finds there only what it wrote itself (`addOnlyTenant`). With `OM_PUBLIC_READS`, everyone may
 * call routes with `read` or `read or add` in the default tenant, except for those with `keyOnly`.
 */
export type Access = 'anyone' | 'metrics' | Role | 'read or add';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

export interface Call {
  readonly api: ApiContext;
  readonly request: Request;
  readonly response: Response;
  /**
   * Identifies the caller, as `AccessControl.admit` does, and throws if it is not admitted. Handlers of routes that
   * anyone may call use it to decide how much to show.
   * @param key a key that the request carries elsewhere than in its headers; if undefined, the headers are read
   */
  readonly admit: (access: Exclude<Access, 'anyone'>, key?: string) => Promise<Holder>;
}

/**
 * A call whose caller was admitted, by a key, a token or a session, or without one where that is allowed. The tenant is
 * that of the key; if the key has several, the header `x-cairn-tenant` chooses one, and without it the first holds. For
 * a key that is bound to a user or tags, `tenant` reaches only their memories (`boundTenant`).
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
  /** Schemas of the events' data by event name, if the type is `text/event-stream`; else undefined. */
  readonly events?: Readonly<Record<string, z.ZodType>>;
  readonly example: unknown;
}

export interface Body<Schema extends z.ZodType = z.ZodType> {
  readonly json: Schema;
  readonly example: z.input<Schema>;
  /** Set if the body may be left out, which means the same as `{}`. */
  readonly optional?: true;
  /** Longest body in bytes; by default 1 MiB. */
  readonly maxBytes?: number;
  /** Greatest number of field names in the body, all objects together; by default 20,000. */
  readonly maxNames?: number;
  /**
   * Set if the fields may be given in the query string instead of a body. It is the word for the fields in an error
   * message, such as `filter`.
   */
  readonly orQuery?: string;
  readonly media?: readonly Media[];
}

export interface Reply {
  readonly description: string;
  readonly json?: z.ZodType;
  /** Example of the reply; if left out, it is made from the examples of the schema. */
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
  /** Schema of the query string; if left out, the query string is not read. */
  readonly query?: Query;
  readonly body?: Body<Json>;
  readonly headers?: readonly RequestHeader[];
  readonly replies: Answers;
  /**
   * Whether clients may send a request again if its reply was lost: true if a second request has no further effect. By
   * default it is false for POST, and true for every other method.
   */
  readonly repeatable?: boolean;
  /**
   * Rate limits of the key from which requests take tokens; by default none. One token of `queries` or `adds` and the
   * bytes of an upload are taken before the route is called, tokens of `batch_items` by the route itself.
   */
  readonly limited?: readonly RateClass[];
  /** Meaning of errors that are specific to this route, by code. */
  readonly errors?: Readonly<Partial<Record<ErrorCode, string>>>;
}

type PathName<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathName<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** A request as the route's schemas parsed it, and the functions that read its body and answer it. */
interface Parsed<Path extends string, Query extends z.ZodType, Json extends z.ZodType, Answers extends Replies> {
  readonly params: { readonly [Name in PathName<Path>]: string };
  readonly query: z.output<Query>;
  /**
   * Reads and parses the body. It must be called at most once.
   * @throws EngineError `unsupported` for a body other than JSON; `too_large` over `maxBytes`; `unavailable` if bodies
   *   fill their share of the memory; `invalid` if it is malformed, does not match the schema or takes more than 25 s;
   *   `forbidden` if it names a user to whom the key is not bound
   */
  readBody(): Promise<z.output<Json>>;
  /** Answers with JSON. Only the compiler checks the shape of `body`; it is not parsed. */
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
  readonly keyOnly?: true;
  readonly recordsItsReads?: true;
  readonly alsoReads?: true;
  readonly handle: (call: TenantCall) => void | Promise<void>;
}
export type Route = OpenRoute | KeyRoute;

/** Routes about one subject. The API description groups them under its name. */
export interface RouteGroup {
  readonly name: string;
  readonly description: string;
  readonly routes: readonly Route[];
}

/**
 * Declares a route that is not open to anyone: `access` says who may call it. The query string is parsed before the
 * handler is called, the body when the handler calls `readBody`. A bound key that names another user in either is
 * refused with `forbidden`.
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
     * bound to a user or tags. A route without it answers bound keys with `forbidden`.
     */
    readonly forBoundKeys?: true;
    /** Set if callers without a key get `unauthenticated`, also with `OM_PUBLIC_READS`; it matters only for reads. */
    readonly keyOnly?: true;
    /**
     * Set if the handler itself records in the audit log what was read; by default the route's name is recorded. It
     * matters only with `OM_AUDIT=all`, which records reads.
     */
    readonly recordsItsReads?: true;
    /**
     * Set if the route needs another role than `read`, and yet can answer with stored texts: its calls are then
     * recorded as reads, too, with `OM_AUDIT=all`.
     */
    readonly alsoReads?: true;
    readonly handle: (call: TenantCall & Parsed<Path, Query, Json, Answers>) => void | Promise<void>;
  },
): KeyRoute {
  return { ...parts, handle: (call) => parts.handle({ ...call, ...readCall(parts, call) }) };
}

/** Declares a route that answers everyone, with or without a key. */
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

/** Returns the `user_id` of a parsed query string or body; undefined if it is missing, empty or not a string. */
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

async function readFields(
  { optional, orQuery, maxBytes, maxNames = MAX_JSON_NAMES }: Body,
  request: Request,
): Promise<unknown> {
  const isThere = hasBody(request);
  if (orQuery !== undefined) {
    if (isThere && Object.keys(request.query).length > 0)
      throw new EngineError('invalid', `give the ${orQuery} in the query string or in the body, not in both`);
    if (!isThere) return request.query;
  }
  if (optional && !isThere) return {};
  return (await readJson(request, { maxBytes, most: { values: MAX_JSON_VALUES, names: maxNames } })).value;
}
