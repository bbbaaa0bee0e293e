import http from 'node:http';
import https from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Problem } from '../api/schemas/problem.ts';
import { linesOf } from '../api/lines.ts';
import { CliError } from './cli-error.ts';

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
  /** Sends a form; a file in it is read from the disk as it is sent. */
  postForm<Reply>(path: string, form: FormData): Promise<Reply>;
  /** Sends a body of NDJSON and hands over each line of the reply as it arrives, while the rest is still being sent. */
  exchangeLines(path: string, body: AsyncIterable<Uint8Array | string>): AsyncGenerator<unknown>;
}

/** The server was not reached, or the connection ended too soon: what became of the request is not known. */
export class ConnectionError extends CliError {}

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

  function open(method: string, path: string, headers: Record<string, string> = {}): http.ClientRequest {
    const authorization = secret ? { authorization: `Bearer ${secret}` } : {};
    const request = start(new URL(path.slice(1), base), { method, headers: { ...authorization, ...headers } });
    return request.setTimeout(TIMEOUT_MS, () =>
      request.destroy(new ConnectionError(`${place} has been silent for ${TIMEOUT_MS / 1000} s`)),
    );
  }

  async function ask(method: string, path: string, body?: object): Promise<Answer> {
    const request = open(method, path, body === undefined ? {} : { 'content-type': 'application/json' });
    try {
      request.end(body === undefined ? undefined : JSON.stringify(body));
      const [response] = (await once(request, 'response')) as [http.IncomingMessage];
      return await readAnswer(response);
    } catch (error) {
      // A server may end a connection that was kept open just as the next request goes out on it, as after an upload that it refused.
      if (method === 'GET' && request.reusedSocket && !(error instanceof CliError)) return ask(method, path, body);
      throw unreachable(place, error);
    }
  }

  async function expectReply<Reply>(asked: Promise<Answer>): Promise<Reply> {
    const answer = await asked;
    if (answer.status >= 300) throw refused(place, answer);
    return parseReply(place, answer.reply) as Reply;
  }

  return {
    get: (path) => expectReply(ask('GET', path)),
    post: (path, body) => expectReply(ask('POST', path, body)),
    delete: (path) => expectReply(ask('DELETE', path)),

    async postForm<Reply>(path: string, form: FormData): Promise<Reply> {
      const { headers, body } = new Response(form);
      const request = open('POST', path, { 'content-type': headers.get('content-type')! });
      const responded = once(request, 'response') as Promise<[http.IncomingMessage]>;
      const explain = startSending(place, request, Readable.fromWeb(body!));
      try {
        const [response] = await responded;
        return await expectReply<Reply>(readAnswer(response));
      } catch (error) {
        throw explain(error);
      } finally {
        // A refusal may come before all is sent; otherwise the connection serves the next request.
        if (!request.writableFinished) request.destroy();
      }
    },

    async *exchangeLines(path, body) {
      const request = open('POST', path, { 'content-type': 'application/x-ndjson', accept: 'application/x-ndjson' });
      const responded = once(request, 'response') as Promise<[http.IncomingMessage]>;
      const explain = startSending(place, request, body);
      try {
        const [response] = await responded;
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

/** @returns what tells the reason of a failure: if sending failed, how the reply ends says more, a refusal or that the connection broke */
function startSending(place: string, request: http.ClientRequest, body: AsyncIterable<Uint8Array | string>) {
  let unreadable: unknown;
  pipeline(
    remembering(body, (error) => (unreadable = error)),
    request,
  ).catch(() => {});
  return (error: unknown) => (unreadable instanceof Error ? unreadable : unreachable(place, error));
}

/** Passes a body on and keeps the error that ended it, which the request would report as its own. */
function remembering(body: AsyncIterable<Uint8Array | string>, onError: (error: unknown) => void): Readable {
  return Readable.from(
    (async function* () {
      try {
        yield* body;
      } catch (error) {
        onError(error);
        throw error;
      }
    })(),
  );
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
  return new ConnectionError(
    `the connection to ${place} broke off${code === undefined ? '' : ` (${code})`}: does the server still run?`,
    {
      cause: error,
    },
  );
}
