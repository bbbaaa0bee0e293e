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
 * `invalid`: what it answered is no answer to a question. `detail` is a sentence without host, address or key.
 */
export type ServerAnswer =
  | { readonly outcome: 'answered'; readonly bytes: Buffer }
  | { readonly outcome: 'timeout' | 'unreachable' | 'refused' | 'invalid'; readonly detail: string };

/** Asks other Cairn servers. It reaches only addresses that may be asked, whatever resolvers say. */
export interface FederationClient {
  /** Checks an address before it is stored. @returns it without a slash at its end @throws EngineError `invalid` */
  check(url: string): string;
  /**
   * Asks a server once, by `POST /memory/query`. What it answers is not looked at; a reply of more than `maxBytes` is
   * `invalid`.
   * @throws whatever `signal` was aborted with
   */
  ask(
    server: FederationAccess,
    question: object,
    options: { readonly maxBytes: number; readonly signal: AbortSignal },
  ): Promise<ServerAnswer>;
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
    async ask(server, question, { maxBytes, signal }) {
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
        if (status === 200) {
          const bytes = await readBounded(body, maxBytes);
          return bytes === undefined
            ? invalid(`the server answered more than ${maxBytes} bytes`)
            : { outcome: 'answered', bytes };
        }
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

/** Reads a body of at most `maxBytes`. @returns undefined for a longer one */
async function readBounded(body: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
