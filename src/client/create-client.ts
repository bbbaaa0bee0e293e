/**
 * Makes clients of a Cairn server. They run wherever `fetch` and `AbortSignal.any` exist: Node, Deno, Bun, browsers.
 */
import { CairnError } from './errors.ts';
import { isLast, readEvents } from './events.ts';
import { OPERATIONS } from './generated/operations.ts';
import type { Matches, MatchesAsText, Operations, QueryMemoriesInput } from './generated/types.ts';
import type { Operation } from './operation.ts';
import { eachEntry } from './pages.ts';
import { waitForJobs } from './ready.ts';
import type { CallOptions, ReadyOptions, Reply, WithHead } from './reply.ts';
import { placeFields, type Input } from './request.ts';
import { isAway, outlast, pause, send, waitForReturn, type Fetch, type Outgoing, type Sending } from './send.ts';

export interface ClientOptions {
  /**
   * Address of the server, such as `http://127.0.0.1:8080`. A path is kept, for a server behind a proxy; a query string
   * is dropped.
   */
  readonly url: string;
  /**
   * Key or token, or a function that returns it, which is called once for each request and not again for its further
   * attempts. By default requests carry no key.
   */
  readonly key?: string | (() => string | Promise<string>) | undefined;
  /**
   * Id of the tenant in which requests act, for a key or token that may act in several tenants. By default it is the
   * tenant of the key or token.
   */
  readonly tenant?: string | undefined;
  /**
   * Longest time of one attempt, until the whole reply has arrived, or a stream of events is open (ms). The default of
   * 90,000 is longer than the longest `wait`.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Greatest number of attempts after the first; 2 by default, 0 for none. Every request is repeated if the server is
   * busy (429, 503), as it has done nothing yet. If the connection breaks off, a gateway answers 502 or 504, or the
   * error has `mayBeWritten`, only requests that may safely be sent twice are repeated. An attempt that times out is
   * not repeated, nor one whose reply asks for a wait of more than a minute. Further pages, streams of events and
   * `ready` do not count attempts: while the server is away, they try again for about a minute; with 0, only `ready`
   * does.
   */
  readonly retries?: number | undefined;
  /** Further headers of every request. They replace headers of the same name that the client sets. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sends the requests; by default the global `fetch` does. */
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
  readonly format: Exclude<QueryMemoriesInput['format'], AsJson['format']>;
}

const TIMEOUT_MS = 90_000;
const RETRIES = 2;
const EVENT_STREAM = 'text/event-stream';

/**
 * Makes a client and sends nothing yet. Each method takes the fields of the path, the query string and the body in one
 * object. A method rejects with a CairnError, with the reason of the caller's signal, or with what `key` throws.
 * @throws CairnError `invalid` if `options.url` is not an HTTP address
 */
export function createClient(options: ClientOptions): Client {
  const connection: Connection = { ...options, base: baseOf(options.url) };
  const methods = Object.entries(OPERATIONS).map(([name, operation]) => {
    return [name, methodOf(connection, operation)] as const;
  });
  return Object.fromEntries(methods) as unknown as Client;
}

interface Connection extends ClientOptions {
  /** The address of the server, without slashes at its end. */
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
    const sending = sendingOf(connection, options);
    const valueOf = async (asked: Input) =>
      asked === input ? reply : (await outlast(() => ask(asked), sending)).value;
    return Object.assign(reply, {
      withHead: () => {
        reply.catch(() => {}); // Its failure reaches the caller through the head.
        return head;
      },
      ready: async (ready: ReadyOptions = {}) =>
        waitForJobs(await reply, ready, (id, signal) => getJob(connection, id, signal)),
      [Symbol.asyncIterator]: () => eachEntry(operation, input, valueOf),
    });
  };
}

/** Reads a job with a single attempt, since `waitForJobs` repeats the request itself. */
async function getJob(connection: Connection, id: string, signal: AbortSignal) {
  return (await call(connection, OPERATIONS.getJob, { id }, { signal, retries: 0 }, readJson)).value;
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
    // The routes of MCP refuse a request that does not accept both types; all other routes answer with JSON.
    accept: operation.events ? EVENT_STREAM : operation.text ? undefined : `application/json, ${EVENT_STREAM}`,
    'idempotency-key': idempotencyKey === false ? undefined : idempotencyKey,
    'if-match': ifMatch,
    'x-request-id': requestId,
  };
  const set = Object.entries(own).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return {
    method,
    url: base + target,
    headers: Object.fromEntries([...set, ...namesLowered(headers), ...namesLowered(options.headers)]),
    ...(body === undefined ? {} : { body }),
    isRepeatable: idempotencyKey !== false || (!operation.once && ifMatch === undefined),
  };
}

/**
 * Returns the headers with lower-case names, since `fetch` would send both values of a name that is given in two
 * spellings.
 */
function namesLowered(headers: Readonly<Record<string, string>> = {}): [name: string, value: string][] {
  return Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
}

/**
 * Makes an idempotency key of 128 random bits in hexadecimal. `crypto.randomUUID` does not exist in pages that were
 * loaded over plain HTTP.
 */
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

/**
 * Yields the events of a stream. If the connection breaks off, or the stream ends before its job or document has ended,
 * the stream is opened again; if its events have ids, it continues after the last one. It throws if the stream could
 * not be opened at first, if it breaks off and `retries` is 0 or the server stays unreachable for over a minute, and
 * for any other error.
 */
async function* watch(connection: Connection, operation: Operation, input: Input, options: CallOptions) {
  const { retries } = sendingOf(connection, options);
  const isOfJob = operation === OPERATIONS.watchJob;
  let asked = await placed(connection, operation, input, options);
  let sent = options;
  let brokenSince: number | undefined;
  let wasOpen = false;
  let hasEnded = false;
  for (;;) {
    let openSince = Infinity;
    try {
      const { value: body } = await call(connection, operation, asked, sent, readStream);
      [wasOpen, openSince] = [true, Date.now()];
      for await (const event of readEvents(body, options.signal)) {
        brokenSince = undefined;
        if (event.id !== undefined) [asked, sent] = [{ ...asked, cursor: event.id }, withoutPlace(options)];
        hasEnded = isLast(event, isOfJob);
        yield event;
      }
      if (hasEnded) return;
      throw new CairnError('unreachable', 'the stream of events ended too soon');
    } catch (error) {
      if (hasEnded && isAway(error)) return;
      if (!wasOpen || retries === 0) throw error;
      // A server whose stream held was back, even if nothing happened that it could tell.
      if (Date.now() - openSince > HELD_MS) brokenSince = undefined;
      brokenSince ??= Date.now();
      await pause(waitForReturn(error, brokenSince, REOPEN_MS), options.signal);
    }
  }
}

/** Time after which a stream of events that broke off is opened again (ms). */
const REOPEN_MS = 500;
/** Time for which a reopened stream must have stayed open to show that the server is working again (ms). */
const HELD_MS = 1_000;

/**
 * Replaces the cursor `latest` in the input by the cursor of the newest event, so that a stream that is opened again
 * after a break misses no event.
 */
async function placed(
  connection: Connection,
  operation: Operation,
  input: Input,
  options: CallOptions,
): Promise<Input> {
  if (operation !== OPERATIONS.watchEvents || input.cursor !== 'latest') return input;
  const { value } = await call(connection, OPERATIONS.listEvents, { ...input, limit: 1 }, options, readJson);
  return { ...input, cursor: (value as { readonly cursor: string }).cursor };
}

/** Returns the options without the header `last-event-id`, since the server would prefer that header to `cursor`. */
function withoutPlace(options: CallOptions): CallOptions {
  const others = namesLowered(options.headers).filter(([name]) => name !== 'last-event-id');
  return { ...options, headers: Object.fromEntries(others) };
}

async function readStream(response: Response): Promise<ReadableStream<Uint8Array>> {
  if (isEventStream(response) && response.body !== null) return response.body;
  throw new CairnError('no_cairn', 'the reply is no stream of events: what answers is no Cairn server');
}
