import type { IncomingMessage } from 'node:http';
import type { Config } from '../engine/index.ts';

/**
 * Matches a Host header of a name or address and perhaps a port. Other characters could end the quotes in
 * `WWW-Authenticate`.
 */
const HOST = /^[\w.:[\]-]{1,255}$/;

/**
 * Returns the address of this server without slashes at its end: `OM_PUBLIC_URL` if it is set, else `http://` and the
 * request's Host header, or `localhost` if the header is missing or malformed.
 */
export function publicUrl({ headers }: IncomingMessage, { OM_PUBLIC_URL: url }: Config): string {
  if (url !== undefined) return url.replace(/\/+$/, '');
  const { host = '' } = headers;
  return `http://${HOST.test(host) ? host : 'localhost'}`;
}
