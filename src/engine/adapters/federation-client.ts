import type { Network } from '../config.ts';
import type { FederationAccess } from '../control/federation.ts';
import { DocumentError } from '../documents/document-error.ts';
import { EngineError } from '../errors.ts';
import { VERSION } from '../version.ts';
import { connectToAddress, guardedConnector, resolveByDns } from './guarded-connector.ts';
import { checkGuardedUrl, failureOf, isOrdinary } from './guarded-url.ts';

/** Header of a question that another server asks. A server does not ask such a question on, so that none goes round. */
export const FEDERATED_HEADER = 'x-cairn-federated';

/**
 * What came of a question: the bytes of the answer, or why there is none. `refused`: the server answered an error.
 * `invalid`: what it answered is no answer to a question. `failed`: there is no room for its answer here. `detail` is a
 * sentence without host, address or key.
 */
export type ServerAnswer =
  | { readonly outcome: 'answered'; readonly bytes: Buffer }
  | { readonly outcome: 'timeout' | 'unreachable' | 'refused' | 'invalid' | 'failed'; readonly detail: string };

/** Asks other Cairn servers. It reaches only addresses that may be asked, whatever resolvers say. */
export interface FederationClient {
  /** Checks an address before it is stored. @returns it without a slash at its end @throws EngineError `invalid` */
  check(url: string): string;
  /**
   * Asks a server once, by `POST /memory/query`. What it answers is not looked at.
   * @throws whatever `signal` was aborted with
   */
  ask(server: FederationAccess, question: object, options: AskOptions): Promise<ServerAnswer>;
}

interface AskOptions {
  /** Most bytes of a reply; a longer one is `invalid`. */
  readonly maxBytes: number;
  readonly room: AnswerRoom;
  readonly signal: AbortSignal;
}

/** The memory that the replies to one question may take. A reply that finds none left is `failed`. */
export interface AnswerRoom {
  /** Takes room for bytes that have arrived. @returns false, and takes nothing, if there is none left */
  take(bytes: number): boolean;
  /** Gives back what was taken for a reply that is no answer. */
  give(bytes: number): void;
}

/**
 * Creates a client that asks public addresses by https at port 443, and `allowed` networks by http and at other ports,
 * too. Redirects are not followed, and a reply is read up to a bound.
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
      // An empty query string or fragment would swallow the path of the question that is appended, too.
      if (/[?#]/.test(text)) throw new EngineError('invalid', 'url: leave the query string and fragment out of it');
      return url.href.replace(/\/+$/, '');
    },
    async ask(server, question, { signal, ...bounds }) {
      const url = new URL(`${server.url}/memory/query`);
      const timeout = AbortSignal.timeout(timeoutMs);
      const either = AbortSignal.any([signal, timeout]);
      const { Agent, request } = await import('undici');
      const agent = new Agent({
        connect: guardedConnector({
          ...{ resolve: resolveByDns, connect: connectToAddress, denied, allowed, signal: either },
          onlyAllowed: !isOrdinary(url),
        }),
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      });
      try {
        const { statusCode: status, body } = await request(url, {
          ...{ dispatcher: agent, method: 'POST', signal: either },
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

/** Reads a body of at most `maxBytes`, as long as there is room for it. */
async function readBounded(
  body: AsyncIterable<Buffer>,
  { maxBytes, room }: Pick<AskOptions, 'maxBytes' | 'room'>,
): Promise<ServerAnswer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let answer: ServerAnswer | undefined;
  try {
    for await (const chunk of body) {
      if (bytes + chunk.length > maxBytes) return invalid(`the server answered more than ${maxBytes} bytes`);
      if (!room.take(chunk.length))
        return { outcome: 'failed', detail: 'the answers that are read now leave no room for this one' };
      bytes += chunk.length;
      chunks.push(chunk);
    }
    answer = { outcome: 'answered', bytes: Buffer.concat(chunks) };
    return answer;
  } finally {
    if (answer === undefined) room.give(bytes);
  }
}
