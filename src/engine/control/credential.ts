import type { IncomingMessage } from 'node:http';
import { isLoopback } from '../config.ts';
import { EngineError } from '../errors.ts';

/** Which key a request carries, and whether it comes from this machine: what every server of Cairn asks first. */

const SCHEME = /^(?:bearer|apikey) +([\x21-\x7e]+) *$/i;

/**
 * The one credential sent, undefined if none. Two of them, or an unreadable one, are refused rather than guessed at.
 * @throws EngineError `unauthenticated`
 */
export function readCredential(request: IncomingMessage): string | undefined {
  const { authorization = [], 'x-api-key': apiKey = [] } = request.headersDistinct;
  if (authorization.length + apiKey.length === 0) return undefined;
  const secret = authorization.length === 1 ? SCHEME.exec(authorization[0]!)?.[1] : apiKey[0];
  if (authorization.length + apiKey.length > 1 || secret === undefined || secret === '') {
    throw new EngineError(
      'unauthenticated',
      'send exactly one key, as `Authorization: Bearer <key>` or `x-api-key: <key>`',
    );
  }
  return secret;
}

/**
 * True for a request that reached a loopback address under a loopback name: a web page whose host name was rebound to 127.0.0.1 sends
 * its own name as Host.
 */
export function isFromHere(request: IncomingMessage): boolean {
  // IPv4 seen by a socket that listens on both families comes as ::ffff:127.0.0.1.
  const address = (request.socket.localAddress ?? '').replace(/^::ffff:/, '');
  const name = (request.headers.host ?? '').replace(/:\d{1,5}$/, '').toLowerCase();
  return isLoopback(address) && isLoopback(name);
}
