import http from 'node:http';
import https from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Problem } from '../api/schemas/problem.ts';
import { linesOf } from '../api/lines.ts';
import { CliError } from './cli-error.ts';
import { encodeForm, type FileForm } from './file-form.ts';

/** How to reach a server; what is left out comes from the environment. */
export interface ConnectionOptions {
  readonly url?: string;
  readonly key?: string;
}

/** The HTTP API as the commands use it. Whatever goes wrong is a `CliError` of one line. */
export interface Client {
  get<Reply>(path: string): Promise<Reply>;
  post<Reply>(path: string, body?: object): Promise<Reply>;
  delete<Reply>(path: string): Promise<Reply>;
  /** Sends a form whose file is read from the disk as it is sent. */
  postForm<Reply>(path: string, form: FileForm): Promise<Reply>;
  /** Sends a body of NDJSON and hands over each line of the reply as it arrives, while the rest is still being sent. */
  exchangeLines(path: string, body: AsyncIterable<Uint8Array | string>): AsyncGenerator<unknown>;
}

/** The server was not reached, or the connection ended too soon: what became of the request is not known. */
export class ConnectionError extends CliError {}

/** The connection stood, and ended before the whole answer was there. */
class BrokenConnectionError extends ConnectionError {}

/** The server answered that it will not. */
export class RefusalError extends CliError {
  readonly status: number;
  /** As in the server's reply; '' where it is none of ours. */
  readonly code: string;
  /** When it may be worth asking again; undefined where the server does not say. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { status, code, retryAfterMs }: Pick<RefusalError, 'status' | 'code' | 'retryAfterMs'>) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

/** A server that is asked to wait does so for at most 60 s. */
const TIMEOUT_MS = 90_000;
const LINE_BYTES = 1024 * 1024;

export function connect({ url, key }: ConnectionOptions, environment: NodeJS.ProcessEnv = process.env): Client {
  const base = parseUrl(url ?? (environment.CAIRN_URL || `http://127.0.0.1:${environment.OM_PORT || 8080}`));
  const secret = key ?? (environment.CAIRN_API_KEY || environment.OM_API_KEY);
  const place = base.origin + base.pathname.slice(0, -1);
  // Not `fetch`: it promises a reply only once the whole body is sent, and refuses a list of ports.
  const { request: start } = base.protocol === 'https:' ? https : http;

  /** @param isNew for a connection of its own; by default one may serve that was kept open after another request */
  function open({ method, path, headers }: Outgoing, { isNew = false } = {}): http.ClientRequest {
    const authorization = secret ? { authorization: `Bearer ${secret}` } : {};
    const request = start(new URL(path.slice(1), base), {
      method,
      headers: { ...authorization, ...headers },
      ...(isNew ? { agent: false } : {}),
    });
    // What breaks once the response began is told to its reader, and is no error that nobody expected.
    request.on('error', () => {});
    return request.setTimeout(TIMEOUT_MS, () =>
      request.destroy(new ConnectionError(`${place} has been silent for ${TIMEOUT_MS / 1000} s`)),
    );
  }

  async function ask(outgoing: Outgoing, { isNew = false } = {}): Promise<Answer> {
    const request = open(outgoing, { isNew });
    const explain = startSending(place, request, outgoing.body?.() ?? []);
    let response: http.IncomingMessage | undefined;
    try {
      [response] = (await once(request, 'response')) as [http.IncomingMessage];
      return await readAnswer(response);
    } catch (error) {
      const reason = explain(error);
      // A server may end a kept connection just as a request goes out on it. Any may be repeated: what came twice, the server recognises.
      const isStale = response === undefined && request.reusedSocket && reason instanceof BrokenConnectionError;
      if (isStale) return ask(outgoing, { isNew: true });
      throw reason;
    } finally {
      // A refusal may come before all is sent; otherwise the connection serves the next request.
      if (!request.writableFinished) request.destroy();
    }
  }

  async function expectReply<Reply>(outgoing: Outgoing): Promise<Reply> {
    const answer = await ask(outgoing);
    if (answer.status >= 300) throw refused(place, answer);
    return parseReply(place, answer.reply) as Reply;
  }

  return {
    get: (path) => expectReply({ method: 'GET', path }),
    post: (path, body) => expectReply({ method: 'POST', path, ...(body === undefined ? {} : encodeJson(body)) }),
    delete: (path) => expectReply({ method: 'DELETE', path }),
    postForm: async (path, form) => expectReply({ method: 'POST', path, ...encodeForm(form) }),

    async *exchangeLines(path, body) {
      const headers = { 'content-type': 'application/x-ndjson', accept: 'application/x-ndjson' };
      // The body can be read only once, so the request must not meet a kept connection that has ended.
      const request = open({ method: 'POST', path, headers }, { isNew: true });
      const explain = startSending(place, request, body);
      try {
        const [response] = (await once(request, 'response')) as [http.IncomingMessage];
        if (response.statusCode! >= 300) throw refused(place, await readAnswer(response));
        for await (const lines of linesOf(response, { maxBytes: LINE_BYTES })) {
          for (const line of lines) yield parseReply(place, line.bytes?.toString() ?? '');
        }
      } catch (error) {
        throw explain(error);
      } finally {
        request.destroy();
      }
    },
  };
}

/** A request that can be sent more than once. */
interface Outgoing {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: () => Body;
}

type Body = AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>;

function encodeJson(value: object): Pick<Outgoing, 'headers' | 'body'> {
  const json = JSON.stringify(value);
  const headers = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(json)) };
  return { headers, body: () => [json] };
}

interface Answer {
  readonly status: number;
  readonly reply: string;
  readonly retryAfterMs: number | undefined;
}

async function readAnswer(response: http.IncomingMessage): Promise<Answer> {
  const seconds = Number(response.headers['retry-after']);
  return {
    status: response.statusCode!,
    reply: await text(response),
    retryAfterMs: seconds > 0 ? seconds * 1000 : undefined,
  };
}

/** @returns what tells the reason of a failure: the error of the body if that failed first, and otherwise what became of the connection */
function startSending(place: string, request: http.ClientRequest, body: Body) {
  let isOver = false;
  let unreadable: Error | undefined;
  // Heard before the pipeline hears it, which then ends the body with an error that is not the body's own.
  for (const event of ['error', 'close']) request.once(event, () => (isOver = true));
  const source = Readable.from(body).once('error', (error) => {
    if (!isOver) unreadable = error;
  });
  pipeline(source, request).catch(() => {});
  return (error: unknown): Error => unreadable ?? unreachable(place, error);
}

function parseUrl(url: string): URL {
  const base = URL.parse(url.endsWith('/') ? url : `${url}/`);
  if (base === null || !['http:', 'https:'].includes(base.protocol)) {
    throw new CliError('--url (or CAIRN_URL): expected an address such as http://127.0.0.1:8080', { exitCode: 2 });
  }
  return base;
}

function parseReply(place: string, reply: string): unknown {
  try {
    return JSON.parse(reply);
  } catch {
    throw new CliError(`what answers at ${place} is not a Cairn server: check --url or CAIRN_URL`);
  }
}

function refused(place: string, { status, reply, retryAfterMs }: Answer): CliError {
  const problem = parseReply(place, reply) as Partial<Problem> | null;
  const detail = problem?.detail ?? `the server answered ${status}`;
  const refusal = { status, code: problem?.code ?? '', retryAfterMs };
  if (status === 401) return new RefusalError(`${detail}; here: pass --key, or set CAIRN_API_KEY`, refusal);
  if (status >= 500 && problem?.request_id !== undefined)
    return new RefusalError(`${detail} (${problem.request_id})`, refusal);
  return new RefusalError(detail, refusal);
}

function unreachable(place: string, error: unknown): CliError {
  if (error instanceof CliError) return error;
  const { code } = (error instanceof AggregateError ? error.errors[0] : error) as { code?: string };
  if (code === 'ECONNREFUSED') {
    return new ConnectionError(
      `no server at ${place}: start it with \`npm start\` (or \`cairn serve\`), or name another with --url`,
    );
  }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return new ConnectionError(`no such host: ${place}; check --url or CAIRN_URL`, { cause: error });
  }
  return new BrokenConnectionError(
    `the connection to ${place} broke off${code === undefined ? '' : ` (${code})`}: does the server still run?`,
    {
      cause: error,
    },
  );
}
