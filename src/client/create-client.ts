/** Makes clients of a Cairn server, wherever there are `fetch` and `AbortSignal.any`: Node, Deno, Bun, browsers. */
import { CairnError } from './errors.ts';
import { readEvents } from './events.ts';
import { OPERATIONS } from './generated/operations.ts';
import type { Matches, MatchesAsText, Operations, QueryMemoriesInput } from './generated/types.ts';
import type { Operation } from './operation.ts';
import { eachEntry } from './pages.ts';
import { waitForJobs } from './ready.ts';
import type { CallOptions, ReadyOptions, Reply, WithHead } from './reply.ts';
import { placeFields, type Input } from './request.ts';
import { send, type Fetch, type Outgoing, type Sending } from './send.ts';

export interface ClientOptions {
  /** Address of the server, such as `http://127.0.0.1:8080`; a path is kept, for a server behind a proxy. */
  readonly url: string;
  /** Key or token, or a function that returns it, called for each request; none is sent by default. */
  readonly key?: string | (() => string | Promise<string>) | undefined;
  /** Tenant to work on, for a token of several tenants. */
  readonly tenant?: string | undefined;
  /**
   * Longest time of one attempt until the reply has arrived, in milliseconds; 90 000 by default, more than the longest
   * `wait`.
   */
  readonly timeoutMs?: number | undefined;
  /** Most attempts after the first, 2 by default; see `send`. */
  readonly retries?: number | undefined;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sends the requests in place of the global `fetch`. */
  readonly fetch?: Fetch | undefined;
}

/** A client of one server: a method for each operation of its API. */
export interface Client extends Omit<Operations, 'queryMemories'> {
  /** Finds the memories that answer a query: `POST /memory/query`. */
  queryMemories(input: QueryMemoriesInput & AsJson, options?: CallOptions): Reply<Matches>;
  /** Finds the memories that answer a query, and lays them out for a language model: `POST /memory/query`. */
  queryMemories(input: QueryMemoriesInput & AsText, options?: CallOptions): Reply<MatchesAsText>;
}

interface AsJson {
  readonly format?: 'json' | null | undefined;
}
interface AsText {
  readonly format: 'prompt' | 'text';
}

const TIMEOUT_MS = 90_000;
const RETRIES = 2;
const EVENT_STREAM = 'text/event-stream';

/**
 * Makes a client. Nothing is sent yet. Every method takes the fields of the path, the query string and the body in one
 * object, and throws CairnError.
 * @throws CairnError `invalid` for an address that is not HTTP
 */
export function createClient(options: ClientOptions): Client {
  const connection: Connection = { ...options, base: baseOf(options.url) };
  const methods = Object.entries(OPERATIONS).map(([name, operation]) => {
    return [name, methodOf(connection, operation)] as const;
  });
  return Object.fromEntries(methods) as unknown as Client;
}

interface Connection extends ClientOptions {
  /** The address without a slash at its end. */
  readonly base: string;
}

function baseOf(url: string): string {
  const base = URL.parse(url);
  if (base === null || !['http:', 'https:'].includes(base.protocol)) {
    throw new CairnError('invalid', 'url: expected an address such as http://127.0.0.1:8080');
  }
  return (base.origin + base.pathname).replace(/\/+$/, '');
}

type Method = (input?: Input, options?: CallOptions) => unknown;

function methodOf(connection: Connection, operation: Operation): Method {
  if (operation.events) return (input = {}, options = {}) => watch(connection, operation, input, options);
  return (input = {}, options = {}) => {
    const read = operation.text ? (response: Response) => response.text() : readJson;
    const ask = (asked: Input) => call<unknown>(connection, operation, asked, options, read);
    const head = ask(input);
    const reply = head.then(({ value }) => value);
    const valueOf = async (asked: Input) => (asked === input ? reply : (await ask(asked)).value);
    return Object.assign(reply, {
      withHead: () => {
        reply.catch(() => {}); // Its failure reaches the caller through the head.
        return head;
      },
      ready: async (ready: ReadyOptions = {}) => waitForJobs(await reply, ready, (id) => getJob(connection, id, ready)),
      [Symbol.asyncIterator]: () => eachEntry(operation, input, valueOf),
    });
  };
}

async function getJob(connection: Connection, id: string, { signal }: ReadyOptions) {
  return (await call(connection, OPERATIONS.getJob, { id }, { signal }, readJson)).value;
}

async function call<Value>(
  connection: Connection,
  operation: Operation,
  input: Input,
  options: CallOptions,
  read: (response: Response) => Promise<Value>,
): Promise<WithHead<Value>> {
  const outgoing = await toOutgoing(connection, operation, input, options);
  return send(outgoing, sendingOf(connection, options), async (response) => {
    return { value: await read(response), status: response.status, headers: response.headers };
  });
}

function sendingOf(connection: Connection, options: CallOptions): Sending {
  return {
    fetch: connection.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    timeoutMs: options.timeoutMs ?? connection.timeoutMs ?? TIMEOUT_MS,
    retries: options.retries ?? connection.retries ?? RETRIES,
    signal: options.signal,
  };
}

async function toOutgoing(
  { base, key, tenant, headers }: Connection,
  operation: Operation,
  input: Input,
  options: CallOptions,
): Promise<Outgoing> {
  const { method, target, body } = placeFields(operation, input);
  const secret = typeof key === 'function' ? await key() : key;
  const { ifMatch, requestId } = options;
  const idempotencyKey = operation.keyed ? (options.idempotencyKey ?? newKey()) : false;
  const own = {
    authorization: secret ? `Bearer ${secret}` : undefined,
    'x-cairn-tenant': tenant,
    'content-type': typeof body === 'string' ? 'application/json' : undefined,
    // The routes of MCP refuse whoever does not accept both; all others answer with JSON then.
    accept: operation.events ? EVENT_STREAM : operation.text ? undefined : `application/json, ${EVENT_STREAM}`,
    'idempotency-key': idempotencyKey === false ? undefined : idempotencyKey,
    'if-match': ifMatch,
    'x-request-id': requestId,
  };
  const set = Object.entries(own).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return {
    method,
    url: base + target,
    headers: { ...Object.fromEntries(set), ...headers, ...options.headers },
    ...(body === undefined ? {} : { body }),
    isRepeatable: idempotencyKey !== false || (!operation.once && ifMatch === undefined),
  };
}

/** Makes an idempotency key. `crypto.randomUUID` is missing in pages that came over plain HTTP. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

async function readJson(response: Response): Promise<unknown> {
  const isStream = isEventStream(response);
  const whole = await response.text();
  // MCP answers with a stream, whose last message is the reply.
  const text = isStream ? ([...whole.matchAll(/^data: ?(.*)$/gm)].at(-1)?.[1] ?? '') : whole;
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new CairnError('no_cairn', 'the reply is no JSON: what answers is no Cairn server', { cause });
  }
}

function isEventStream({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith(EVENT_STREAM) === true;
}

async function* watch(connection: Connection, operation: Operation, input: Input, options: CallOptions) {
  const { value: body } = await call(connection, operation, input, options, async (response) => {
    if (isEventStream(response)) return response.body;
    throw new CairnError('no_cairn', 'the reply is no stream of events: what answers is no Cairn server');
  });
  if (body !== null) yield* readEvents(body, options.signal);
}
