/** What generated clients know of each operation, read from the description of the API. */
import type { OpenApiDocument, Operation, Parameter } from '../src/api/openapi/document.ts';
import type { JsonSchema } from '../src/api/openapi/json-schemas.ts';
import { referredName } from './typescript.ts';

export interface ClientOperation {
  readonly name: string;
  /** Upper case. */
  readonly method: string;
  /** Path with `{name}` for a parameter. */
  readonly path: string;
  readonly summary: string;
  readonly pathParameters: readonly Parameter[];
  /** Parameters of the query string. A field that the body has, too, is a field of the body. */
  readonly queryParameters: readonly Parameter[];
  readonly body: JsonSchema | undefined;
  /** A form with a file, which may be sent in place of `body`. */
  readonly form: JsonSchema | undefined;
  /** Whether every field may be left out. */
  readonly mayBeEmpty: boolean;
  /** Whether a second request has no second effect, so that a client may repeat one whose reply it never got. */
  readonly isRepeatable: boolean;
  /** Whether a client makes it repeatable with an idempotency key. */
  readonly takesIdempotencyKey: boolean;
  /** Schemas of the replies in JSON; empty if there are none. */
  readonly replies: readonly JsonSchema[];
  /** Schemas of the data of server-sent events by name, if the reply is a stream of them. */
  readonly events: Readonly<Record<string, JsonSchema>> | undefined;
  /** The field that names the next page's beginning, and the schema of an entry, if the reply is a page of a list. */
  readonly page: { readonly by: PageField; readonly entry: JsonSchema } | undefined;
  /** Whether the reply names background work that a client can wait for. */
  readonly leavesWork: boolean;
}

/** Fields of requests that say where a page begins: a place in an order, the last number seen, or an offset. */
const PAGE_FIELDS = ['cursor', 'before', 'u'] as const;
/** `offset` stands for `u` of a list whose replies do not name the next page. */
type PageField = (typeof PAGE_FIELDS)[number] | 'offset';

/** Lists the operations of the API in the order of its description. */
export function clientOperations(document: OpenApiDocument): ClientOperation[] {
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, operation]) =>
      apart(readOperation(document, { method: method.toUpperCase(), path, operation })),
    ),
  );
}

/** Tells an operation that answers with a list or with a stream of its news apart: `listEvents` and `watchEvents`. */
function apart(operation: ClientOperation): ClientOperation[] {
  if (operation.events === undefined || operation.replies.length === 0) return [operation];
  const watching = { name: operation.name.replace(/^list/, 'watch'), replies: [], page: undefined };
  return [
    { ...operation, events: undefined },
    { ...operation, ...watching },
  ];
}

/** Names of the components that requests use, with those that they use in turn. */
export function sentComponents(document: OpenApiDocument): ReadonlySet<string> {
  const found = new Set<string>();
  const collect = (part: unknown): void => {
    for (const [, name] of JSON.stringify(part ?? null).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (found.has(name!)) continue;
      found.add(name!);
      collect(document.components.schemas[name!]);
    }
  };
  for (const operations of Object.values(document.paths)) {
    for (const { parameters, requestBody } of Object.values(operations)) collect([parameters, requestBody]);
  }
  return found;
}

function readOperation(
  document: OpenApiDocument,
  { method, path, operation }: { method: string; path: string; operation: Operation },
): ClientOperation {
  const resolve = (schema: JsonSchema): JsonSchema =>
    schema.$ref === undefined ? schema : resolve(document.components.schemas[referredName(schema.$ref)]!);
  const own = (operation.parameters ?? []).filter((parameter): parameter is Parameter => 'in' in parameter);
  const headers = (operation.parameters ?? []).flatMap((parameter) =>
    '$ref' in parameter ? [referredName(parameter.$ref)] : [],
  );
  const { body, form, isRequired } = readBody(operation);
  const bodyFields = new Set(fieldsOf(body, resolve));
  const pathParameters = own.filter((parameter) => parameter.in === 'path');
  const queryParameters = own.filter(({ in: place, name }) => place === 'query' && !bodyFields.has(name));
  const contents = Object.entries(operation.responses).flatMap(([status, reply]) =>
    '$ref' in reply || Number(status) >= 300 ? [] : [reply.content ?? {}],
  );
  const replies = contents.flatMap((content): JsonSchema[] => {
    const { schema } = content['application/json'] ?? {};
    return schema === undefined ? [] : [schema];
  });
  const asked = [...queryParameters.map(({ name }) => name), ...bodyFields];
  return {
    name: operation.operationId,
    method,
    path,
    summary: operation.summary,
    pathParameters,
    queryParameters,
    body,
    form,
    mayBeEmpty: pathParameters.length === 0 && queryParameters.every(({ required }) => !required) && !isRequired,
    isRepeatable: operation['x-repeatable'] ?? method !== 'POST',
    takesIdempotencyKey: headers.includes('idempotency-key'),
    replies: distinct(replies),
    events: contents
      .map((content) => content['text/event-stream']?.['x-events'])
      .find((events) => events !== undefined),
    page: pageOf(replies.map(resolve), asked),
    leavesWork: replies.some((reply) => namesJobs(reply, resolve)),
  };
}

function readBody({ requestBody }: Operation) {
  const content = requestBody?.content ?? {};
  return {
    body: content['application/json']?.schema,
    form: content['multipart/form-data']?.schema,
    isRequired: requestBody?.required ?? false,
  };
}

type Resolve = (schema: JsonSchema) => JsonSchema;

/** Names of the fields of an object; of all of them together if there are several to choose from. */
function fieldsOf(schema: JsonSchema | undefined, resolve: Resolve): string[] {
  if (schema === undefined) return [];
  const { anyOf, oneOf, properties = {} } = resolve(schema);
  return (anyOf ?? oneOf)?.flatMap((choice) => fieldsOf(choice, resolve)) ?? Object.keys(properties);
}

function pageOf(replies: readonly JsonSchema[], asked: readonly string[]): ClientOperation['page'] {
  const items = replies[0]?.properties?.['items'] as JsonSchema | undefined;
  const by = PAGE_FIELDS.find((field) => asked.includes(field));
  if (by === undefined || items?.type !== 'array') return undefined;
  const namesNext = replies[0]?.properties?.['next'] !== undefined;
  return { by: by === 'u' && !namesNext ? 'offset' : by, entry: items.items as JsonSchema };
}

function namesJobs(reply: JsonSchema, resolve: Resolve): boolean {
  const { anyOf, oneOf, properties = {} } = resolve(reply);
  const choices = (anyOf ?? oneOf ?? []) as readonly JsonSchema[];
  const results = properties['results'] as JsonSchema | undefined;
  const isWork = 'job_id' in properties && 'state' in properties;
  return (
    isWork ||
    [...choices, ...(results?.items === undefined ? [] : [results.items as JsonSchema])].some((choice) =>
      namesJobs(choice, resolve),
    )
  );
}

function distinct(schemas: readonly JsonSchema[]): JsonSchema[] {
  return [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
}
