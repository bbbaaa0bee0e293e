/** Random programs of requests, made of the description of the API, so that new operations are called as well. */
import fc from 'fast-check';
import type { JsonSchema } from '../../../src/api/openapi/json-schemas.ts';
import type { OpenApiDocument, Operation, Parameter } from '../../../src/api/openapi/document.ts';
import { FIELDS, FILTER_FIELDS, KIND_OF_PATH, KINDS, LISTS, NAMES_IN_PATHS, seen, time } from './vocabulary.ts';

/** A request, or something that is done to both services between two requests. */
export type Step =
  | {
      readonly call: string;
      readonly path?: Readonly<Record<string, unknown>>;
      readonly query?: Readonly<Record<string, unknown>>;
      readonly headers?: Readonly<Record<string, unknown>>;
      readonly body?: unknown;
      /** Form of the body; JSON by default. */
      readonly as?: 'ndjson' | 'form' | undefined;
      /** The key that sends it: that of an admin by default. */
      readonly key?: unknown;
    }
  | { readonly advance: number }
  | { readonly work: 'drain' | 'upkeep' };

/** Parameters that are not sent: they wait, or change nothing of the answer. */
const UNSENT = new Set(['wait', 'prefer', 'x-request-id', 'traceparent', 'token', 'last-event-id']);

/** A tool of MCP, with the schema of its arguments. */
export interface Tool {
  readonly name: string;
  readonly inputSchema: JsonSchema;
}

export interface KnownOperation {
  readonly name: string;
  readonly method: string;
  /** Pattern of the path, with `{name}` for a parameter. */
  readonly path: string;
  readonly requests: fc.Arbitrary<Step>;
}

/** Makes arbitrary requests to each operation of a description, by the operation's name. */
export function operationsOf(api: OpenApiDocument, tools: readonly Tool[]): ReadonlyMap<string, KnownOperation> {
  const valueOf = createValues(api);
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const requests = operation.operationId.startsWith('callMcp')
        ? toolCalls(operation.operationId, tools, valueOf)
        : requestsTo(api, path, operation, valueOf);
      return { name: operation.operationId, method: method.toUpperCase(), path, requests };
    }),
  );
  return new Map(operations.map((operation) => [operation.name, operation]));
}

/** How often some operations are called in random programs, where 1 is as often as most. */
const OFTEN: Readonly<Record<string, number>> = {
  ...{ addMemory: 25, addMemories: 8, queryMemories: 20, pageMemories: 10, patchMemory: 10, callMcp: 8 },
  ...{ ingestDocument: 6, replaceDocument: 3, putItem: 6, listItems: 4, putStoreItem: 3, searchStoreItems: 3 },
  ...{ supersedeMemory: 5, contradictMemories: 3, linkMemories: 4, reinforceMemory: 3, storeNodeOutput: 3 },
  ...{ replayRecall: 4, explainMemory: 4, diffMemories: 4, createStandingQuery: 2, exportData: 2, importData: 2 },
  // These take much away from the requests that follow.
  ...{ deleteMemoriesOfUser: 0.3, deleteDocument: 0.5, revokeKey: 0.1, putPrivacyPolicy: 0.2, patchLimits: 0.2 },
  putRetrievalDefaults: 0.3,
  // These are about little that a tenant stores.
  ...{ createTenant: 0.2, eraseTenant: 0.2, requestBackup: 0.2, addServer: 0.2, removeServer: 0.2, startReembed: 0.3 },
  ...{ pauseReembed: 0.3, cancelReembed: 0.3, getResource: 0.1, getMcpResource: 0.1, getMcpResourceOfUser: 0.1 },
};

/** Makes arbitrary programs of `length` steps at most, with times that pass and work that is done between requests. */
export function programsOf(
  operations: ReadonlyMap<string, KnownOperation>,
  { leftOut, length }: { readonly leftOut: ReadonlySet<string>; readonly length: number },
): fc.Arbitrary<Step[]> {
  const called = [...operations.values()].filter(({ name }) => !leftOut.has(name));
  const pauses = fc.constantFrom(0, 1, 1_000, 3_600_000, 86_400_000, 8 * 86_400_000);
  const step = fc.oneof(
    ...called.map(({ name, requests }) => ({ weight: Math.round(20 * (OFTEN[name] ?? 1)), arbitrary: requests })),
    { weight: 200, arbitrary: fc.record({ advance: pauses }) },
    {
      weight: 240,
      arbitrary: fc.record({ work: fc.constantFrom('drain' as const, 'drain' as const, 'upkeep' as const) }),
    },
  );
  return fc.array(step, { minLength: 1, maxLength: length, size: 'max' });
}

type ValueOf = (schema: JsonSchema, name: string, inFilter?: boolean) => fc.Arbitrary<unknown>;

function requestsTo(api: OpenApiDocument, path: string, operation: Operation, valueOf: ValueOf): fc.Arbitrary<Step> {
  const call = operation.operationId;
  const parameters = (operation.parameters ?? [])
    .map((one) => ('$ref' in one ? api.components.parameters[one.$ref.split('/').at(-1)!]! : one))
    .filter(({ name }) => !UNSENT.has(name));
  const of = (place: Parameter['in']) => parameters.filter((one) => one.in === place);
  const [first = ''] = path.split('/').slice(1);
  const inPath = Object.fromEntries(of('path').map(({ name }) => [name, pathValues(first, name)]));
  const inQuery = sparse(
    of('query').map(({ name, schema, required }) => [
      name,
      valueOf(schema, name),
      required === true || NEEDED.has(`${call} ${name}`),
    ]),
  );
  const base = {
    call: fc.constant(call),
    path: fc.record(inPath),
    headers: fc.record(headersOf(of('header'))),
    key: fc.oneof({ weight: 12, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: seen('secret') }),
  };
  const none = fc.constant({});
  const bodies = Object.entries(operation.requestBody?.content ?? {});
  if (bodies.length === 0) return fc.record({ ...base, query: inQuery });
  const forms = bodies.map(([type, { schema }], place) => {
    const as = type === 'application/x-ndjson' ? 'ndjson' : type === 'multipart/form-data' ? 'form' : undefined;
    const body =
      call === 'importData'
        ? exported
        : as === 'ndjson'
          ? fc.array(valueOf(schema, ''), { maxLength: 3 })
          : withNeeded(valueOf(schema, ''), call);
    // What can stand in the query in place of the body stands there sometimes.
    const isEither = call.startsWith('delete') || call.startsWith('unlink');
    const made = fc.record({ ...base, query: isEither ? none : inQuery, body, as: fc.constant(as) });
    return { weight: place === 0 ? 4 : 1, arbitrary: made };
  });
  return fc.oneof(...forms);
}

/** Fields without which a request says nothing, though its schema requires none: the operation and the field. */
const NEEDED = new Set([
  ...['diffMemories from', 'getItem key', 'deleteItem key', 'getStoreItem key', 'getStoreItem namespace'],
  ...[
    'listSessions user_id',
    'putItem value',
    'ingestDocument text',
    'storeNodeOutput node',
    'retrieveNodeMemories node',
  ],
  ...[
    'storeGraphReflection node',
    'patchMemory content',
    'patchMemory tags',
    'patchMemory metadata',
    'patchMemory status',
  ],
  'patchMemory valid_to',
]);

/** Adds to a body, most often, one of the fields without which it says nothing. */
function withNeeded(bodies: fc.Arbitrary<unknown>, call: string): fc.Arbitrary<unknown> {
  const names = [...NEEDED].filter((one) => one.startsWith(`${call} `)).map((one) => one.slice(call.length + 1));
  if (names.length === 0) return bodies;
  const status = fc.constantFrom('active', 'archived');
  const added = names.map((name) => fc.record({ [name]: name === 'status' ? status : (FIELDS[name] ?? time) }));
  return fc.tuple(bodies, fc.oneof(...added)).map(([body, more]) => ({ ...more, ...(body as object) }));
}

/** The lines of an earlier export, as they are or with other ids. */
const exported = fc.record({ $export: fc.nat(3), isRenamed: fc.boolean() });

function headersOf(parameters: readonly Parameter[]): Record<string, fc.Arbitrary<unknown>> {
  const often = (arbitrary: fc.Arbitrary<unknown>) =>
    fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
  const known: Record<string, fc.Arbitrary<unknown>> = {
    'if-match': often(fc.oneof(seen('etag'), fc.constantFrom('*', '"0"', '"1"', '"2"'))),
    'idempotency-key': often(fc.constantFrom('i1', 'i2')),
  };
  return Object.fromEntries(parameters.map(({ name }) => [name, known[name] ?? fc.constant(undefined)]));
}

function pathValues(first: string, name: string): fc.Arbitrary<unknown> {
  const ids = NAMES_IN_PATHS[first] ?? (name === 'id' ? seen(KIND_OF_PATH[first] ?? 'memory') : fc.constant('x'));
  return fc.oneof({ weight: 12, arbitrary: ids }, { weight: 1, arbitrary: fc.constantFrom('nothing', '%00', "a'b") });
}

/** Makes objects with all required fields and few of the others. */
function sparse(
  fields: readonly (readonly [string, fc.Arbitrary<unknown>, boolean])[],
): fc.Arbitrary<Record<string, unknown>> {
  const optional = fields.filter(([, , isRequired]) => !isRequired).length;
  const weight = Math.max(1, Math.min(10, Math.round(optional / 2.5)));
  const absent = { weight, arbitrary: fc.constant(undefined) };
  return fc
    .record(
      Object.fromEntries(
        fields.map(([name, arbitrary, isRequired]) => [
          name,
          isRequired ? arbitrary : fc.oneof({ withCrossShrink: true }, absent, { weight: 1, arbitrary }),
        ]),
      ),
    )
    .map((made) => Object.fromEntries(Object.entries(made).filter(([, value]) => value !== undefined)));
}

/** Makes the function that turns a schema of the description into arbitrary values of it, and of some that are not. */
function createValues(api: OpenApiDocument): ValueOf {
  const resolve = (schema: JsonSchema): JsonSchema =>
    schema.$ref === undefined ? schema : resolve(api.components.schemas[schema.$ref.split('/').at(-1)!]!);
  const valueOf: ValueOf = (given, name, inFilter = false) => {
    if (given.$ref?.endsWith('/Time') === true) return time;
    const own = (inFilter ? FILTER_FIELDS[name] : undefined) ?? FIELDS[name];
    const schema = resolve(given);
    const options = schema.anyOf ?? schema.oneOf;
    if (own !== undefined && schema.type !== 'null' && !isChoice(schema) && !isList(schema, name))
      return schema.type === 'array' && !LISTS.has(name) ? fc.array(own, { maxLength: 3 }) : own;
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.type === 'null') return fc.constant(null);
    if (schema.type === 'boolean') return fc.boolean();
    if (options?.some((option) => option.format === 'date-time') === true) return time;
    if (options !== undefined) {
      return fc.oneof(
        ...options.map((option) => ({
          weight: option.type === 'null' ? 1 : 6,
          arbitrary: valueOf(option, name, inFilter),
        })),
      );
    }
    const kind = KINDS[name];
    if (schema.type === 'object') return objectOf(schema, inFilter || name === 'filters');
    if (schema.type === 'array') {
      const entry =
        kind === undefined ? valueOf((schema.items ?? {}) as JsonSchema, `${name}[]`, inFilter) : seen(kind);
      return fc.array(entry, {
        minLength: Math.min(schema.minItems ?? 0, 1),
        maxLength: Math.min(schema.maxItems ?? 3, 3),
      });
    }
    if (kind !== undefined)
      return fc.oneof({ weight: 9, arbitrary: seen(kind) }, { weight: 1, arbitrary: fc.constant('x') });
    if (name === 'cursor') return seen('cursor');
    return plainValue(schema);
  };
  const objectOf = (schema: JsonSchema, inFilter: boolean) =>
    sparse(
      Object.entries(schema.properties ?? {})
        .filter(([name]) => !UNSENT.has(name))
        .map(([name, property]) => [
          name,
          valueOf(property as JsonSchema, name, inFilter),
          schema.required?.includes(name) ?? false,
        ]),
    );
  return valueOf;
}

const isChoice = (schema: JsonSchema) =>
  schema.enum !== undefined || (schema.anyOf ?? []).some((option) => option.enum !== undefined);
/** Whether the schema is a list of objects or the like, whose name means another thing elsewhere (`items`). */
const isList = (schema: JsonSchema, name: string) =>
  name === 'items' && schema.type === 'array' && Object.keys((schema.items ?? {}) as object).length > 0;

function plainValue({ type, minimum, maximum, ...schema }: JsonSchema): fc.Arbitrary<unknown> {
  const [least, most] = [Number(minimum ?? 0), Number(maximum ?? 5)];
  switch (type) {
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.constantFrom(...new Set([least, least + 1, Math.min(least + 3, most), Math.min(most, 1000)]));
    case 'number':
      return fc.constantFrom(least, most, ...[0.1, 0.35, 0.5, 0.9].map((part) => least + part * (most - least)));
    case 'string':
      return schema.format === undefined ? FIELDS['title']! : time;
    default:
      return Array.isArray(type) && (type as string[]).includes('boolean')
        ? fc.constantFrom(true, false, null)
        : FIELDS['metadata']!;
  }
}

function toolCalls(call: string, tools: readonly Tool[], valueOf: ValueOf): fc.Arbitrary<Step> {
  const calls = tools.map(({ name, inputSchema }) =>
    valueOf(inputSchema, '').map((input) => ({
      ...{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: input } },
    })),
  );
  const user = NAMES_IN_PATHS['mcp']!;
  return fc.record({
    call: fc.constant(call),
    path: call === 'callMcp' ? fc.constant({}) : fc.record({ user_id: user }),
    query: fc.constant({}),
    headers: fc.constant({ accept: 'application/json, text/event-stream' }),
    body: fc.oneof(...calls),
    as: fc.constant(undefined),
    key: fc.constant(undefined),
  });
}
