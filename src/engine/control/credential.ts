/**
 * Reads the key that a request carries, and tells whether the request comes from this machine. Every server of Cairn
 * checks both first.
 */

import type { IncomingMessage } from 'node:http';
import { isLoopback } from '../config.ts';
import { EngineError } from '../errors.ts';

const SCHEME = /^(?:bearer|apikey) +([\x21-\x7e]+) *$/i;

/**
 * Returns the key of a request as it was sent, unchecked, from `Authorization: Bearer`, `Authorization: ApiKey` or
 * `x-api-key`; undefined if the request has neither header.
 * @throws EngineError `unauthenticated` for several keys, an empty key, or another form of `Authorization`
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
 * Whether a request arrived at a loopback address and its Host header is a loopback name or address, with or without a
 * port. The name is checked because a web page whose host name was rebound to 127.0.0.1 sends its own name.
 */
export function isFromHere(request: IncomingMessage): boolean {
  // A socket that listens on both families reports an IPv4 address as ::ffff:127.0.0.1.
  const address = (request.socket.localAddress ?? '').replace(/^::ffff:/, '');
  const name = (request.headers.host ?? '').replace(/:\d{1,5}$/, '').toLowerCase();
  return isLoopback(address) && isLoopback(name);
}
