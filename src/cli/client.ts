import http from 'node:http';
import https from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { linesOf } from '../api/lines.ts';
import {
  CairnError,
  createClient,
  type Operations as ApiOperations,
  type Problem,
  type Matches,
  type MatchesAsText,
  type QueryMemoriesInput,
} from '../client/index.ts';
import { redirectOf } from '../client/send.ts';
import { CliError } from './cli-error.ts';
import { encodeForm, type FileForm } from './file-form.ts';

/**
 * Address and key of a server, from the options `--url` and `--key`. An option that was not given is undefined;
 * `connect` then takes the value from the environment.
 */
export interface ConnectionOptions {
  readonly url?: string;
  readonly key?: string;
}

/**
 * How long a client waits: `usual` gives a request up when the server has sent nothing for 90 s, and a method after
 * 10 min; `patient` gives up either after an hour, for methods whose reply comes only when long work is done.
 */
export type Patience = 'usual' | 'patient';

/**
 * A client of the HTTP API for commands: the methods of the published client, and three kinds of requests that the
 * published client lacks. A failure of the server or the connection is a `CliError` with a message of one line; in a
 * loop over a stream of events it stays a `CairnError`.
 */
export interface Client extends Omit<Operations, 'queryMemories'> {
  /** Sends a query. The reply has matches, or a text if `format` asks for one. */
  queryMemories(input: QueryMemoriesInput): Promise<Matches & Partial<Pick<MatchesAsText, 'text'>>>;
  /**
   * Sends a form, whose file is read from the disk meanwhile. It also throws what `encodeForm` and reading the file
   * throw.
   */
  sendForm<Reply>(method: 'POST' | 'PUT', path: string, form: FileForm): Promise<Reply>;
  /**
   * Sends a body of NDJSON and yields each line of the reply, parsed, as it arrives. The reply may begin while the body
   * is still being sent. It also throws what `body` throws.
   */
  exchangeLines(path: string, body: AsyncIterable<Uint8Array | string>): AsyncGenerator<unknown>;
  /**
   * Yields the bytes of a long reply as they arrive.
   * @param accept accepted media type; by default any
   */
  receive(path: string, accept?: string): AsyncGenerator<Uint8Array>;
}

type Operations = {
  readonly [Name in keyof ApiOperations]: (
    input?: Parameters<ApiOperations[Name]>[0],
  ) => Promise<Awaited<ReturnType<ApiOperations[Name]>>>;
};

/**
 * Error of a request without a complete reply: the server was not reached, or the connection ended too early. Whether
 * the request had an effect is unknown.
 */
export class ConnectionError extends CliError {}

/**
 * Error of a request without a complete reply for any reason but a refused connection, an unknown host or a silent
 * server: mostly a connection that was made and ended before the whole reply had arrived.
 */
class BrokenConnectionError extends ConnectionError {}

/** Error of a request that the server answered with an error status. */
export class RefusalError extends CliError {
  readonly status: number;
  /** Error code of the server's reply, such as `not_found`; '' if it has none. */
  readonly code: string;
  /** Time after which to send the request again (ms); undefined if the server named none. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { status, code, retryAfterMs }: Pick<RefusalError, 'status' | 'code' | 'retryAfterMs'>) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Longest silence of a server after which a request is given up (ms). It is more than the 60 s for which a request may
 * wait for background work.
 */
const TIMEOUT_MS = 90_000;
/**
 * Longest time of one request of a method of the published client (ms). It ends sooner if the server sends nothing for
 * `TIMEOUT_MS`. Forms, lines and long replies have no such limit.
 */
const LONGEST_MS = 600_000;
/** Longest silence, and longest time of a request, of a patient client (ms). */
const PATIENT_MS = 3_600_000;
/** Longest line of an NDJSON reply that is read, in bytes; what sends a longer one counts as no Cairn server. */
const MAX_LINE_BYTES = 1024 * 1024;

/**
 * Makes a client of the server at `url`, or at CAIRN_URL, or at port OM_PORT (8080) of this machine. Its key is `key`,
 * or CAIRN_API_KEY, or OM_API_KEY; without any, no key is sent. Requests act in the tenant CAIRN_TENANT, by default in
 * the first one of the key. Nothing is sent yet.
 * @throws CliError with exit code 2 for an address that is not HTTP
 */
export function connect(
  { url, key }: ConnectionOptions,
  environment: NodeJS.ProcessEnv = process.env,
  patience: Patience = 'usual',
): Client {
  const base = parseUrl(url ?? (environment.CAIRN_URL || `http://127.0.0.1:${environment.OM_PORT || 8080}`));
  const secret = key ?? (environment.CAIRN_API_KEY || environment.OM_API_KEY);
  const tenant = environment.CAIRN_TENANT || undefined;
  const server: ServerAddress = { base, shownUrl: base.origin + base.pathname.slice(0, -1), secret, tenant, patience };
  return {
    ...operationsOf(server),
    sendForm: async (method, path, form) => expectReply(server, { method, path, ...encodeForm(form) }),
    exchangeLines: (path, body) => exchangeLines(server, path, body),
    receive: (path, accept) => receive(server, path, accept),
  };
}

/**
 * Makes the methods of the client so that they throw `CliError`. Each sends its request once, and again only if a kept
 * connection had ended when it went out.
 */
function operationsOf(server: ServerAddress): Omit<Client, 'sendForm' | 'exchangeLines'> {
  const client = createClient({
    url: server.base.href,
    key: server.secret,
    tenant: server.tenant,
    // A failure is shown at once. Commands that send many requests wait for a busy server in `retryWhileBusy`.
    retries: 0,
    timeoutMs: server.patience === 'patient' ? PATIENT_MS : LONGEST_MS,
    fetch: (url, init) => fetchOver(server, url, init),
  });
  const methods = Object.entries(client).map(([name, method]: [string, (input?: object) => unknown]) => {
    const ask = async (input?: object) => {
      try {
        return await method(input);
      } catch (error) {
        throw toCliError(server, error);
      }
    };
    return [name, ask] as const;
  });
  return Object.fromEntries(methods) as unknown as Client;
}

/**
 * Sends a request of the published client, whose body is a text. It is the `fetch` of that client, but sends through
 * `ask`.
 */
async function fetchOver(
  server: ServerAddress,
  url: string,
  { method, headers, body }: RequestInit,
): Promise<Response> {
  const path = `/${url.slice(server.base.href.length)}`;
  const json = body as string | undefined;
  const length = json === undefined ? {} : { 'content-length': String(Buffer.byteLength(json)) };
  const sent = json === undefined ? {} : { body: () => [json] };
  const answer = await ask(server, {
    method: method!,
    path,
    headers: { ...(headers as Record<string, string>), ...length },
    ...sent,
  });
  return new Response(answer.reply, { status: answer.status, headers: answer.headers });
}

function toCliError(server: ServerAddress, error: unknown): Error {
  if (!(error instanceof CairnError)) return error as Error;
  if (error.cause instanceof CliError) return error.cause;
  const { code, status, message, retryAfterMs, requestId } = error;
  const isRedirect = status !== undefined && status >= 300 && status < 400;
  if (code === 'no_cairn' && !isRedirect) return notCairn(server);
  if (status === undefined) return new CliError(message);
  return refused({ status, code, message, retryAfterMs, requestId });
}

interface ServerAddress {
  /** Address with a slash at its end, so that paths are resolved below it. */
  readonly base: URL;
  /** Address in the form in which messages show it, without a slash at its end. */
  readonly shownUrl: string;
  readonly secret: string | undefined;
  /** Id of the tenant in which requests act; undefined for that of the key. */
  readonly tenant: string | undefined;
  readonly patience: Patience;
}

async function expectReply<Reply>(server: ServerAddress, outgoing: Outgoing): Promise<Reply> {
  const answer = await ask(server, outgoing);
  if (answer.status >= 300) throw refusedBy(server, answer);
  return parseReply(server, answer.reply) as Reply;
}

async function ask(server: ServerAddress, outgoing: Outgoing, { isNew = false } = {}): Promise<Answer> {
  const request = openRequest(server, outgoing, { isNew });
  const explain = startSending(server, request, outgoing.body?.() ?? []);
  let response: http.IncomingMessage | undefined;
  try {
    [response] = (await once(request, 'response')) as [http.IncomingMessage];
    return await readAnswer(response);
  } catch (error) {
    const reason = explain(error);
    // A server may end a kept connection just as a request goes out on it. Every request may be repeated: the server
    // recognises what it has received before.
    const isStale = response === undefined && request.reusedSocket && reason instanceof BrokenConnectionError;
    if (isStale) return ask(server, outgoing, { isNew: true });
    throw reason;
  } finally {
    // A refusal may come before the whole body is sent, and such a connection cannot serve another request.
    if (!request.writableFinished) request.destroy();
  }
}

async function* exchangeLines(server: ServerAddress, path: string, body: Body): AsyncGenerator<unknown> {
  const headers = { 'content-type': 'application/x-ndjson', accept: 'application/x-ndjson' };
  // The body can be read only once, so the request must not meet a kept connection that has ended.
  // Screening a group of lines may take the server minutes, in which it neither reads nor writes.
  const patient: ServerAddress = { ...server, patience: 'patient' };
  const request = openRequest(patient, { method: 'POST', path, headers }, { isNew: true });
  const explain = startSending(server, request, body);
  try {
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    if (response.statusCode! >= 300) throw refusedBy(server, await readAnswer(response));
    for await (const lines of linesOf(response, { maxBytes: MAX_LINE_BYTES })) {
      for (const line of lines) yield parseReply(server, line.bytes?.toString() ?? '');
    }
  } catch (error) {
    throw explain(error);
  } finally {
    request.destroy();
  }
}

async function* receive(server: ServerAddress, path: string, accept = '*/*'): AsyncGenerator<Uint8Array> {
  const request = openRequest(server, { method: 'GET', path, headers: { accept } }, { isNew: true });
  const explain = startSending(server, request, []);
  try {
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    if (response.statusCode! >= 300) throw refusedBy(server, await readAnswer(response));
    yield* response as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw explain(error);
  } finally {
    request.destroy();
  }
}

/**
 * Opens a request without sending a body; the caller writes the body to it.
 * @param options with `isNew` a new connection is made; without it, a connection that an earlier request left open may
 *   be used
 */
function openRequest(
  { base, shownUrl, secret, tenant, patience }: ServerAddress,
  { method, path, headers }: Outgoing,
  { isNew }: { readonly isNew: boolean },
): http.ClientRequest {
  // `fetch` does not fit: it delivers a reply only once the whole body is sent, and it refuses a list of ports.
  const { request: start } = base.protocol === 'https:' ? https : http;
  const authorization = secret ? { authorization: `Bearer ${secret}` } : {};
  const inTenant = tenant === undefined ? {} : { 'x-cairn-tenant': tenant };
  const request = start(new URL(path.slice(1), base), {
    method,
    headers: { ...authorization, ...inTenant, ...headers },
    ...(isNew ? { agent: false } : {}),
  });
  // A failure after the response began reaches whoever reads the response. Without a listener it would also end the
  // process.
  request.on('error', () => {});
  const silenceMs = patience === 'patient' ? PATIENT_MS : TIMEOUT_MS;
  return request.setTimeout(silenceMs, () =>
    request.destroy(new ConnectionError(`${shownUrl} has been silent for ${silenceMs / 1000} s`)),
  );
}

/** A request whose body can be produced again, so that it can be sent again. */
interface Outgoing {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: () => Body;
}

type Body = AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>;

interface Answer {
  readonly status: number;
  readonly reply: string;
  readonly headers: Record<string, string>;
}

async function readAnswer(response: http.IncomingMessage): Promise<Answer> {
  const headers = Object.entries(response.headers).filter((header): header is [string, string] => {
    return typeof header[1] === 'string';
  });
  return { status: response.statusCode!, reply: await text(response), headers: Object.fromEntries(headers) };
}

/**
 * Begins to send a body.
 * @returns a function that finds the cause of an error of the request: the body's own error if the body failed first; a
 *   `CliError`, such as the server's refusal, as it is; for any other error, one about the connection
 */
function startSending(server: ServerAddress, request: http.ClientRequest, body: Body) {
  let isOver = false;
  let unreadable: Error | undefined;
  // These listeners run before those of `pipeline`, which then destroys the body with an error that is not its own.
  for (const event of ['error', 'close']) request.once(event, () => (isOver = true));
  const source = Readable.from(body).once('error', (error) => {
    if (!isOver) unreadable = error;
  });
  pipeline(source, request).catch(() => {});
  return (error: unknown): Error => unreadable ?? unreachable(server, error);
}

function parseUrl(url: string): URL {
  const base = URL.parse(url.endsWith('/') ? url : `${url}/`);
  if (base === null || !['http:', 'https:'].includes(base.protocol)) {
    throw new CliError('--url (or CAIRN_URL): expected an address such as http://127.0.0.1:8080', { exitCode: 2 });
  }
  return base;
}

function parseReply(server: ServerAddress, reply: string): unknown {
  try {
    return JSON.parse(reply);
  } catch {
    throw notCairn(server);
  }
}

function notCairn({ shownUrl }: ServerAddress): CliError {
  return new CliError(`what answers at ${shownUrl} is not a Cairn server: check --url or CAIRN_URL`);
}

function refusedBy(server: ServerAddress, { status, reply, headers }: Answer): CliError {
  const redirect = redirectOf({ type: 'default', status, headers: new Headers(headers) }, server.base.href);
  if (redirect !== undefined) return new CliError(redirect);
  const problem = parseReply(server, reply) as Partial<Problem> | null;
  const seconds = Number(headers['retry-after']);
  return refused({
    status,
    code: problem?.code ?? '',
    message: problem?.detail ?? `the server answered ${status}`,
    retryAfterMs: seconds > 0 ? seconds * 1000 : undefined,
    requestId: problem?.request_id,
  });
}

interface Refusal extends Pick<RefusalError, 'status' | 'code' | 'retryAfterMs' | 'message'> {
  readonly requestId: string | undefined;
}

function refused({ message, requestId, ...refusal }: Refusal): CliError {
  const { status } = refusal;
  if (status === 401) return new RefusalError(`${message}; here: pass --key, or set CAIRN_API_KEY`, refusal);
  if (status >= 500 && requestId !== undefined) return new RefusalError(`${message} (${requestId})`, refusal);
  return new RefusalError(message, refusal);
}

function unreachable({ shownUrl }: ServerAddress, error: unknown): CliError {
  if (error instanceof CliError) return error;
  const { code } = (error instanceof AggregateError ? error.errors[0] : error) as { code?: string };
  if (code === 'ECONNREFUSED') {
    return new ConnectionError(
      `no server at ${shownUrl}: start it with \`npm start\` (or \`cairn serve\`), or name another with --url`,
    );
  }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return new ConnectionError(`no such host: ${shownUrl}; check --url or CAIRN_URL`, { cause: error });
  }
  return new BrokenConnectionError(
    `the connection to ${shownUrl} broke off${code === undefined ? '' : ` (${code})`}: does the server still run?`,
    {
      cause: error,
    },
  );
}
