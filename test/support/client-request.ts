import { isDeepStrictEqual } from 'node:util';
import { CairnError, createClient } from '../../src/client/index.ts';
import { OPERATIONS } from '../../src/client/generated/operations.ts';
import type { CallOptions, Reply } from '../../src/client/reply.ts';
import { routeOf } from './check-reply.ts';

/** A request in the form in which a test writes it. */
export interface WrittenRequest {
  readonly url: string;
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly key: string | null;
}

export interface ReceivedReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/**
 * Sends a request with the method of the client for its route, so that every test of the API also tests the client. It
 * checks that the client sends exactly this request, and returns or throws exactly what the server answered.
 * @returns undefined if the client cannot be made to send such a request, for example one with a malformed body
 */
export async function requestByClient(request: WrittenRequest): Promise<ReceivedReply | undefined> {
  const asked = methodFor(request);
  if (asked === undefined) return undefined;
  let received: ReceivedReply | undefined;
  const client = createClient({
    url: request.url,
    ...(request.key === null ? {} : { key: request.key }),
    retries: 0,
    // The test's own bound is what ends a request that hangs.
    timeoutMs: 600_000,
    fetch: async (url, init) => {
      requireSame(request, url, init);
      const response = await fetch(url, init);
      received = { status: response.status, headers: response.headers, text: await response.clone().text() };
      return response;
    },
  }) as unknown as Readonly<Record<string, (input: object, options: CallOptions) => Reply<unknown>>>;
  const options = { headers: request.headers, idempotencyKey: false } as const;
  try {
    const { value, status } = await client[asked.name]!(asked.input, options).withHead();
    const isJson = received?.headers.get('content-type')?.startsWith('application/json');
    const expected: unknown = isJson ? JSON.parse(received!.text) : received?.text;
    if (status !== received?.status || !isDeepStrictEqual(value, expected)) {
      throw new Error(`the client read the reply of ${request.method} ${request.path} as ${JSON.stringify(value)}`);
    }
  } catch (error) {
    if (!(error instanceof CairnError) || received === undefined) throw error;
    // Some replies are no problem documents: those of MCP, and what `/ready` says. The client tells their status.
    const { code = error.code, status = received.status } = problemOf(received);
    if (error.code !== code || error.status !== status) throw error;
  }
  return received;
}

function problemOf({ headers, text }: ReceivedReply): Partial<Pick<CairnError, 'code' | 'status'>> {
  const isProblem = headers.get('content-type')?.startsWith('application/problem+json');
  return isProblem ? (JSON.parse(text) as Pick<CairnError, 'code' | 'status'>) : {};
}

/**
 * Headers that are not passed to the client: it sets them itself, or they ask for a form of reply that it does not
 * read.
 */
const UNSENT = ['content-type', 'authorization', 'accept'];

/** Returns the client's operation for a request, and the input with which the client sends exactly this request. */
function methodFor({ method, path, body = {}, headers, key }: WrittenRequest) {
  const name = routeOf(method, path)?.name as keyof typeof OPERATIONS | undefined;
  if (name === undefined || method === 'HEAD' || UNSENT.some((header) => header in headers)) return undefined;
  // MCP has clients of its own, and its replies may be streams.
  if (name === 'callMcp' || name === 'callMcpOfUser' || body instanceof Uint8Array) return undefined;
  // The client sends no empty key, and no field that would be a prototype.
  if (key === '' || Object.hasOwn(Object(body) as object, '__proto__')) return undefined;
  const { at, query, events } = OPERATIONS[name];
  const fields = typeof body === 'object' && body !== null && !Array.isArray(body) ? Object.entries(body) : undefined;
  if (fields === undefined || events) return undefined;
  const [target, search = ''] = path.split('?') as [string, string?];
  const inPath = fieldsOfPath(at.split(' ')[1]!, target, search);
  const inQuery = [...new URLSearchParams(search)];
  const isElsewhere = query !== undefined && inQuery.some(([parameter]) => !query.includes(parameter));
  const isMisplaced = fields.some(([field]) => query?.includes(field) ?? true);
  const all = [...(inPath ?? []), ...inQuery, ...fields];
  const areDistinct = new Set(all.map(([field]) => field)).size === all.length;
  if (inPath === undefined || isElsewhere || isMisplaced || !areDistinct) return undefined;
  return { name, input: Object.fromEntries(all) };
}

function fieldsOfPath(pattern: string, target: string, search: string): [string, string][] | undefined {
  const names = pattern.split('/');
  const values = target.split('/');
  if (names.length !== values.length) return undefined;
  try {
    const found = names.flatMap((name, at) => {
      return name.startsWith('{') ? [[name.slice(1, -1), decodeURIComponent(values[at]!)] as [string, string]] : [];
    });
    decodeURIComponent(search); // Malformed bytes of a query string cannot be sent by the client.
    return found.some(([, value]) => ['', '.', '..'].includes(value)) ? undefined : found;
  } catch {
    return undefined;
  }
}

function requireSame({ method, path, body, key }: WrittenRequest, url: string, init: RequestInit): void {
  const [sent, written] = [new URL(url), new URL(path, url)];
  const isSame =
    init.method === method &&
    decodeURIComponent(sent.pathname) === decodeURIComponent(written.pathname) &&
    isDeepStrictEqual([...sent.searchParams], [...written.searchParams]) &&
    isDeepStrictEqual(JSON.parse((init.body as string | undefined) ?? '{}'), JSON.parse(JSON.stringify(body ?? {}))) &&
    new Headers(init.headers).get('authorization') === (key === null ? null : `Bearer ${key}`);
  if (!isSame) throw new Error(`the client sent ${method} ${path} as ${init.method} ${url}`);
}
