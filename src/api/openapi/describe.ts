import type { z } from 'zod';
import type { ErrorCode } from '../../engine/index.ts';
import type { Body, Media, Reply, Route, RouteGroup } from '../route.ts';
import { REPLY_HEADERS, REQUEST_HEADERS, type ReplyHeader, type RequestHeader } from '../schemas/headers.ts';
import { HTTP_STATUS, problemSchema } from '../schemas/problem.ts';
import type {
  Content,
  HeaderObject,
  OpenApiDocument,
  Operation,
  Parameter,
  Reference,
  ResponseObject,
} from './document.ts';
import { COMMON_ERRORS, errorsOf, exampleProblem } from './errors.ts';
import { exampleOf } from './example.ts';
import { translateSchemas, type JsonSchema } from './json-schemas.ts';

const ABOUT =
  'Memory for AI agents: every text is stored word for word, analysed in the background, and found by words, ' +
  'vectors and links, with the reason for every hit.\n\n' +
  'Errors are `application/problem+json` (RFC 9457): branch on `code`. Unknown fields and parameters are refused ' +
  'by every route that reads any; later versions may add fields to replies. Characters are UTF-16 code units.';

const JSON_TYPE = 'application/json';
const PROBLEM_TYPE = 'application/problem+json';
/** Headers that every request may carry. */
const EVERY_REQUEST: readonly RequestHeader[] = ['x-request-id', 'traceparent'];

/**
 * Describes routes as an OpenAPI 3.1 document. It depends on the routes and the version alone, not on settings or data.
 */
export function describeApi(groups: readonly RouteGroup[], version: string): OpenApiDocument {
  const steps = describeApiInSteps(groups, version);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/**
 * Describes routes as `describeApi` does, but as a generator: the caller may let other requests run between two steps.
 * One step takes a few milliseconds, all of them about 100 ms.
 */
export function* describeApiInSteps(
  groups: readonly RouteGroup[],
  version: string,
): Generator<undefined, OpenApiDocument> {
  const routes = groups.flatMap((group) => group.routes);
  const shown = yield* translateAll(routes);
  const paths: Record<string, Record<string, Operation>> = {};
  for (const { name, routes } of groups) {
    for (const route of routes) (paths[openPath(route.path)] ??= {})[route.method] = describeRoute(route, name, shown);
    yield;
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Cairn',
      version,
      summary: 'Self-hosted memory for AI agents',
      description: ABOUT,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The server that sent this description.' }],
    tags: groups.map(({ name, description }) => ({ name, description })),
    paths,
    components: {
      schemas: shown.components,
      responses: describeCommonErrors(shown),
      parameters: Object.fromEntries(headerNames.map((name) => [name, headerParameter(name, shown)])),
      headers: Object.fromEntries(replyHeaderNames.map((name) => [name, replyHeader(name, shown)])),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'A key, as `Authorization: Bearer KEY`.' },
        token: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'A token of the issuer that `OM_OIDC_ISSUER` names, as `Authorization: Bearer TOKEN`.',
        },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'A key, as `x-api-key: KEY`.' },
      },
    },
  };
}

const headerNames = Object.keys(REQUEST_HEADERS) as RequestHeader[];
const replyHeaderNames = Object.keys(REPLY_HEADERS) as ReplyHeader[];

/** Converts a path pattern of Express (`:id`) to OpenAPI's (`{id}`). */
function openPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}

// ── Schemas ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Schemas of all routes, converted to JSON Schema for OpenAPI. `of` returns the conversion of one zod schema, which may
 * be a reference to an entry of `components`.
 */
interface Shown {
  readonly components: Readonly<Record<string, JsonSchema>>;
  of(schema: z.ZodType): JsonSchema;
}

/**
 * Translates all schemas, one in each step. Schemas with an `id` become components; the others are written out at each
 * use.
 * @throws Error if one id is used for requests and for replies
 */
function* translateAll(routes: readonly Route[]): Generator<undefined, Shown> {
  const sent = new Set<z.ZodType>();
  const answered = new Set<z.ZodType>([problemSchema]);
  const addMedia = (media: readonly Media[] | undefined, set: Set<z.ZodType>) => {
    for (const { schema, events = {} } of media ?? [])
      for (const one of [schema, ...Object.values(events)]) set.add(one);
  };
  for (const { query, body, replies } of routes) {
    for (const schema of [query, body?.json]) if (schema !== undefined) sent.add(schema);
    addMedia(body?.media, sent);
    for (const { json, media } of Object.values(replies)) {
      if (json !== undefined) answered.add(json);
      addMedia(media, answered);
    }
  }
  for (const { schema } of Object.values(REQUEST_HEADERS)) sent.add(schema);
  for (const { schema } of Object.values(REPLY_HEADERS)) answered.add(schema);

  const bySchema = new Map<z.ZodType, JsonSchema>();
  const components: Record<string, JsonSchema> = {};
  for (const [schemas, io] of [
    [sent, 'input'],
    [answered, 'output'],
  ] as const) {
    const own: Record<string, JsonSchema> = {};
    for (const schema of schemas) {
      const translated = translateSchemas({ schema }, io);
      bySchema.set(schema, translated.schemas['schema']!);
      Object.assign(own, translated.components);
      yield;
    }
    for (const [id, schema] of Object.entries(own)) {
      if (id in components)
        throw new Error(`the schema ${id} is sent and answered: give each of the two an id of its own`);
      components[id] = schema;
    }
  }
  const sorted = Object.entries(components).sort(([a], [b]) => (a < b ? -1 : 1));
  return { components: Object.fromEntries(sorted), of: (schema) => bySchema.get(schema)! };
}

// ── Operations ───────────────────────────────────────────────────────────────────────────────────────────────────────

function describeRoute(route: Route, tag: string, shown: Shown): Operation {
  const { name, summary, description, body, repeatable } = route;
  const applied: readonly ReplyHeader[] = route.headers?.includes('prefer') === true ? ['preference-applied'] : [];
  return {
    operationId: name,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(repeatable === undefined ? {} : { 'x-repeatable': repeatable }),
    security: securityOf(route),
    parameters: describeParameters(route, shown),
    ...(body === undefined ? {} : { requestBody: describeBody(body, shown) }),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.replies).map(([status, reply]) => [status, describeReply(reply, shown, applied)]),
      ),
      ...describeErrors(route, shown),
    },
  };
}

function securityOf({ access }: Route): Operation['security'] {
  if (access === 'anyone') return [];
  return [{ bearer: [access] }, { apiKey: [access] }, { token: [access] }];
}

function describeParameters(route: Route, shown: Shown): (Parameter | Reference)[] {
  const { params = {}, query, body, headers = [] } = route;
  const inPath = Object.entries(params).map(([name, { description, example }]): Parameter => {
    return { name, in: 'path', required: true, description, schema: { type: 'string' }, example };
  });
  const orQuery = body?.orQuery === undefined ? [] : queryParameters(body.json, shown, body.example as object);
  const inQuery = query === undefined ? orQuery : queryParameters(query, shown);
  const inHeaders = [...headers, ...EVERY_REQUEST].map((name) => ({ $ref: `#/components/parameters/${name}` }));
  return [...inPath, ...inQuery, ...inHeaders];
}

/**
 * Describes the parameters of a query string.
 * @param examples examples by name of parameter; other parameters get the example of their schema
 */
function queryParameters(query: z.ZodType, shown: Shown, examples: object = {}): Parameter[] {
  return Object.entries(shown.of(query).properties ?? {}).map(([name, property]) => {
    const { description, ...schema } = property as JsonSchema;
    const example = (examples as Record<string, unknown>)[name] ?? exampleOf(schema, shown.components);
    const about = description === undefined ? {} : { description };
    return { name, in: 'query', ...about, schema: withExample(schema, example) };
  });
}

/**
 * Adds an example to a parameter's schema. If it were an example of the parameter itself, the page at /docs would fill
 * it in, and would then send an idempotency key that nobody intended.
 */
function withExample(schema: JsonSchema, example: unknown): JsonSchema {
  return { ...schema, examples: [example] };
}

function headerParameter(name: RequestHeader, shown: Shown): Parameter {
  const { description, schema, example } = REQUEST_HEADERS[name];
  return { name, in: 'header', description, schema: withExample(shown.of(schema), example) };
}

function describeBody({ json, example, optional, orQuery, media }: Body, shown: Shown) {
  return {
    required: optional !== true && orQuery === undefined,
    content: { [JSON_TYPE]: { schema: shown.of(json), example }, ...describeMedia(media, shown) },
  };
}

// ── Replies ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Describes a reply of a route: its text, its media types with their schemas, and its headers.
 * @param further headers that the reply has besides its own
 */
function describeReply(
  { description, json, example, headers = [], media }: Reply,
  shown: Shown,
  further: readonly ReplyHeader[],
): ResponseObject {
  const inJson = json && shown.of(json);
  return {
    description,
    headers: describeHeaders(['x-request-id', ...headers, ...further]),
    content: {
      ...(inJson === undefined
        ? {}
        : { [JSON_TYPE]: { schema: inJson, example: example ?? exampleOf(inJson, shown.components) } }),
      ...describeMedia(media, shown),
    },
  };
}

function describeMedia(media: readonly Media[] = [], shown: Shown): Content {
  return Object.fromEntries(
    media.map(({ type, schema, events, example }) => {
      const named = Object.entries(events ?? {}).map(([name, data]) => [name, shown.of(data)]);
      const ofEvents =
        named.length === 0 ? {} : { 'x-events': Object.fromEntries(named) as Record<string, JsonSchema> };
      return [type, { schema: shown.of(schema), ...ofEvents, example }];
    }),
  );
}

function describeHeaders(names: readonly ReplyHeader[]): Readonly<Record<string, Reference>> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function replyHeader(name: ReplyHeader, shown: Shown): HeaderObject {
  const { description, schema, example } = REPLY_HEADERS[name];
  return { description, schema: shown.of(schema), example };
}

/**
 * Describes the errors of a route, by status. An error without a text of the route's own refers to the components. An
 * error whose status is among the route's replies is left out.
 */
function describeErrors(route: Route, shown: Shown): Record<string, ResponseObject | Reference> {
  const errors = [...errorsOf(route)].filter(([code]) => !(HTTP_STATUS[code] in route.replies));
  return Object.fromEntries(
    errors.map(([code, description]) => [
      HTTP_STATUS[code],
      description === undefined ? { $ref: `#/components/responses/${code}` } : describeError(code, description, shown),
    ]),
  );
}

function describeCommonErrors(shown: Shown): Record<string, ResponseObject> {
  const common = Object.entries(COMMON_ERRORS).filter(([code]) => !WITHOUT_COMPONENT.has(code as ErrorCode));
  return Object.fromEntries(
    common.map(([code, { description }]) => [code, describeError(code as ErrorCode, description, shown)]),
  );
}

/**
 * Errors for which the document has no shared response component, because every route with such an error describes it
 * itself.
 */
const WITHOUT_COMPONENT: ReadonlySet<ErrorCode> = new Set(['not_found', 'conflict', 'unprocessable']);

/** Errors whose reply may say when to try again. */
const WITH_RETRY_AFTER: ReadonlySet<ErrorCode> = new Set(['rate_limited', 'unavailable', 'storage_full']);

function describeError(code: ErrorCode, description: string, shown: Shown): ResponseObject {
  return {
    description,
    headers: describeHeaders([
      'x-request-id',
      ...(code === 'unauthenticated' ? (['www-authenticate'] as const) : []),
      ...(WITH_RETRY_AFTER.has(code) ? (['retry-after'] as const) : []),
    ]),
    content: { [PROBLEM_TYPE]: { schema: shown.of(problemSchema), example: exampleProblem(code) } },
  };
}
