import { Readable } from 'node:stream';
import { linesOf } from '../../api/lines.ts';
import type { Problem } from '../../api/schemas/problem.ts';
import { redirectOf } from '../../client/send.ts';
import type { ServerFinder } from './find-server.ts';

/**
 * Sends messages to the endpoint `/mcp` of a running server. If a request gets no reply, it finds the server again and
 * sends the message once more.
 */
export interface McpEndpoint {
  /**
   * Sends a message and yields the answers, each as one line of JSON; none for a notification.
   * @throws Error with a message of one line if no answer comes, or if the server refuses with something that is no
   *   message of the protocol
   */
  exchange(
    message: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): AsyncGenerator<string, void, void>;
}

export interface McpEndpointOptions {
  readonly finder: ServerFinder;
  /** The address that `finder` returned first. */
  readonly address: string;
  /** Path of the endpoint below the address, with its query string and without a slash at its start. */
  readonly target: string;
  readonly key: string | undefined;
  /** Id of the tenant in which the tools act; undefined for that of the key. */
  readonly tenant?: string | undefined;
}

/** Longest message that is passed on, in bytes. The server accepts 1 MiB, and its answers may be longer. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

/** The server sends the request to another address, to which the key does not go. */
class RedirectError extends Error {}

export function createMcpEndpoint({ finder, address: first, target, key, tenant }: McpEndpointOptions): McpEndpoint {
  let address = first;
  const authorization = key === undefined || key === '' ? {} : { authorization: `Bearer ${key}` };
  const inTenant = tenant === undefined ? {} : { 'x-cairn-tenant': tenant };

  async function post(body: string, headers: object, signal: AbortSignal): Promise<Response> {
    const url = new URL(target, address.endsWith('/') ? address : `${address}/`);
    const response = await fetch(url, {
      method: 'POST',
      body,
      signal,
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...authorization,
        ...inTenant,
        ...headers,
      },
    });
    const redirect = redirectOf(response, url.href);
    if (redirect === undefined) return response;
    await response.body?.cancel();
    throw new RedirectError(redirect);
  }

  return {
    async *exchange(message, headers, signal) {
      const response = await post(message, headers, signal).catch(async (error: unknown) => {
        if (signal.aborted || error instanceof RedirectError) throw error;
        // The server may have ended with the client that started it. Tools may be called again without harm.
        address = await finder.find();
        return post(message, headers, signal);
      });
      const type = response.headers.get('content-type') ?? '';
      if (type.startsWith('text/event-stream') && response.body !== null) return yield* eventsOf(response.body);
      const body = await response.text();
      // Only what Cairn accepted without an answer, which are notifications, has none.
      if (response.status === 202 && body === '') return;
      const answer = type.startsWith('application/json') ? parseJson(body) : undefined;
      if (!isMessage(answer)) throw new Error(refusalOf(response.status, body));
      yield JSON.stringify(answer);
    },
  };
}

/** Yields the data of each event of a stream; each is one message of JSON-RPC. Those of over 16 MiB are left out. */
async function* eventsOf(body: NonNullable<Response['body']>): AsyncGenerator<string, void, void> {
  for await (const lines of linesOf(Readable.fromWeb(body), { maxBytes: MAX_MESSAGE_BYTES })) {
    for (const { bytes } of lines) {
      const data = /^data: ?(.+?)\r?$/.exec(bytes?.toString() ?? '')?.[1];
      if (data !== undefined) yield data;
    }
  }
}

/** Whether a value is a message of JSON-RPC, or a list of them. A proxy or gateway may answer with other JSON. */
function isMessage(value: unknown): boolean {
  return [value].flat().every((one) => typeof one === 'object' && one !== null && Object.hasOwn(one, 'jsonrpc'));
}

/** Parses JSON; undefined for what is none. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/**
 * Returns one line about a reply that is not JSON-RPC: the `detail` of a problem document (for 401 with how to give a
 * key), else only its status.
 */
function refusalOf(status: number, body: string): string {
  const { detail } = (parseJson(body) ?? {}) as Partial<Problem>;
  if (typeof detail !== 'string') return `the server answered ${status}`;
  return status === 401 ? `${detail}; for cairn mcp: pass --key, or set CAIRN_API_KEY` : detail;
}
