import type { Network } from '../config.ts';
import type { FederationAccess } from '../control/federation.ts';
import { DocumentError } from '../documents/document-error.ts';
import { EngineError } from '../errors.ts';
import { inOwnMemory } from '../own-memory.ts';
import { VERSION } from '../version.ts';
import { connectToAddress, guardedConnector, resolveByDns } from './guarded-connector.ts';
import { checkGuardedUrl, failureOf, isOrdinary } from './guarded-url.ts';
import { pacedReplies } from './paced-replies.ts';
import { SentTooMuch } from './paced-socket.ts';

/**
 * Header of a question that another Cairn server sent. A server that gets it does not ask further servers, so that no
 * question circulates.
 */
export const FEDERATED_HEADER = 'x-cairn-federated';

/**
 * The result of asking another server. `answered`: the bytes of its answer, whose content is not checked. The other
 * outcomes say why there is none. `timeout`: the whole answer did not arrive within `OM_FEDERATION_TIMEOUT_MS`.
 * `unreachable`: its address is not allowed, no connection was made, or it broke. `refused`: it replied with an error
 * status. `invalid`: it replied with a redirect or more bytes than allowed. `failed`: this process had no memory left
 * for the answer (`AnswerRoom`). `detail` is a sentence without host, address or key.
 */
export type ServerAnswer =
  | { readonly outcome: 'answered'; readonly bytes: Buffer }
  | { readonly outcome: 'timeout' | 'unreachable' | 'refused' | 'invalid' | 'failed'; readonly detail: string };

/**
 * Sends questions to other Cairn servers. It connects only to allowed addresses, which are checked at each connection.
 */
export interface FederationClient {
  /**
   * Checks the URL of a server before it is stored.
   * @returns the URL without slashes at its end
   * @throws EngineError `invalid` if it is not a URL, has a user name, a password, a query string or a fragment, or if
   *   requests to it are not allowed
   */
  check(url: string): string;
  /**
   * Sends a question to a server once, by `POST /memory/query`. The content of the answer is not checked. A failure is
   * returned as an outcome, not thrown.
   * @throws the abort reason of `signal`
   */
  ask(server: FederationAccess, question: object, options: AskOptions): Promise<ServerAnswer>;
}

interface AskOptions {
  /**
   * Greatest number of bytes of a reply; a longer one has the outcome `invalid`. So has one for which the server sends
   * more than twice this number of bytes and 1 MiB, heads and the frames of chunks included.
   */
  readonly maxBytes: number;
  readonly room: AnswerRoom;
  readonly signal: AbortSignal;
}

/**
 * Counts the bytes of memory that the replies to one question take. The caller may bound the replies to several
 * questions together, such as all questions of one API key. A reply that exceeds the bound has the outcome `failed`.
 * The bytes of a reply with the outcome `answered` stay reserved: the caller releases them.
 */
export interface AnswerRoom {
  /**
   * Reserves memory for bytes that have arrived.
   * @returns false if too little is left; then nothing is reserved
   */
  take(bytes: number): boolean;
  /** Releases the bytes that were reserved for a reply that failed. */
  give(bytes: number): void;
}

/**
 * Creates a client that sends requests to public addresses by https at port 443 only; to the networks in
 * `federationNetworks` also by http and at other ports. Redirects are not followed.
 */
export function createFederationClient({
  deniedNetworks: denied,
  federationNetworks: allowed,
  OM_FEDERATION_TIMEOUT_MS: timeoutMs,
}: {
  readonly deniedNetworks: readonly Network[];
  readonly federationNetworks: readonly Network[];
  readonly OM_FEDERATION_TIMEOUT_MS: number;
}): FederationClient {
  return {
    check(text) {
      const example = 'https://memory.example.com';
      const url = checkGuardedUrl(text, { subject: 'url', example, allowed, setting: 'OM_FEDERATION_ALLOW' });
      // The path of a question is appended to the URL: even an empty query string or fragment would take it up.
      if (/[?#]/.test(text)) throw new EngineError('invalid', 'url: leave the query string and fragment out of it');
      return url.href.replace(/\/+$/, '');
    },
    async ask(server, question, { signal, ...bounds }) {
      const url = new URL(`${server.url}/memory/query`);
      const { maxBytes } = bounds;
      const timeout = AbortSignal.timeout(timeoutMs);
      const either = AbortSignal.any([signal, timeout]);
      const { Agent, request } = await loadHttpClient();
      const agent = new Agent({
        connect: guardedConnector({
          ...{ resolve: resolveByDns, connect: connectToAddress, denied, allowed, signal: either },
          ...{ maxBytes, onlyAllowed: !isOrdinary(url) },
        }),
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      });
      try {
        const { statusCode: status, body } = await request(url, {
          ...{ dispatcher: pacedReplies(agent), method: 'POST', signal: either },
          headers: headersFor(server),
          body: JSON.stringify(question),
        });
        if (status === 200) return await readBounded(body, bounds);
        body.on('error', () => {}).destroy();
        if (status >= 300 && status < 400) return invalid('the server answered with a redirect, which is not followed');
        return { outcome: 'refused', detail: `the server answered ${status}` };
      } catch (error) {
        signal.throwIfAborted();
        if (timeout.aborted) return { outcome: 'timeout', detail: `no answer within ${timeoutMs / 1000} s` };
        if (error instanceof SentTooMuch) return tooLong(maxBytes);
        const detail =
          error instanceof DocumentError ? 'its address is not allowed (OM_FEDERATION_ALLOW)' : failureOf(error);
        return { outcome: 'unreachable', detail };
      } finally {
        await agent.destroy();
      }
    },
  };
}

const invalid = (detail: string): ServerAnswer => ({ outcome: 'invalid', detail });

const tooLong = (maxBytes: number): ServerAnswer => invalid(`the server answered more than ${maxBytes} bytes`);

function headersFor({ key, remoteTenant }: FederationAccess): Record<string, string> {
  return {
    'content-type': 'application/json',
    accept: 'application/json',
    'user-agent': `cairn/${VERSION}`,
    [FEDERATED_HEADER]: '1',
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    ...(remoteTenant === null ? {} : { 'x-cairn-tenant': remoteTenant }),
  };
}

/**
 * Loads the HTTP client `undici`. It has some hundred files, which block the thread for 50 ms or more the first time.
 */
export function loadHttpClient(): Promise<typeof import('undici')> {
  return import('undici');
}

/**
 * Reads a body of at most `maxBytes`, as long as `room` has enough memory left. If the read fails, the memory that it
 * reserved is released.
 */
async function readBounded(
  body: AsyncIterable<Buffer>,
  { maxBytes, room }: Pick<AskOptions, 'maxBytes' | 'room'>,
): Promise<ServerAnswer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let answer: ServerAnswer | undefined;
  try {
    for await (const chunk of body) {
      if (bytes + chunk.length > maxBytes) return tooLong(maxBytes);
      if (!room.take(chunk.length))
        return { outcome: 'failed', detail: 'the answers that are read now leave no room for this one' };
      bytes += chunk.length;
      chunks.push(inOwnMemory(chunk));
    }
    answer = { outcome: 'answered', bytes: Buffer.concat(chunks) };
    return answer;
  } finally {
    if (answer === undefined) room.give(bytes);
  }
}
