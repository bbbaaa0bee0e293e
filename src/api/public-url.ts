import type { IncomingMessage } from 'node:http';
import type { Config } from '../engine/index.ts';

/**
 * Matches a Host header of 1 to 255 characters that may stand in a name, an address or a port. Others could end the
 * quotes in `WWW-Authenticate`. Whether the name or the port is a valid one is not checked.
 */
const HOST = /^[\w.:[\]-]{1,255}$/;

/**
 * Returns the address of this server without slashes at its end: `OM_PUBLIC_URL` if it is set, else `http://` and the
 * request's Host header, or `localhost` if the header is missing or `HOST` does not match it.
 */
export function publicUrl({ headers }: IncomingMessage, { OM_PUBLIC_URL: url }: Config): string {
  if (url !== undefined) return url.replace(/\/+$/, '');
  const { host = '' } = headers;
  return `http://${HOST.test(host) ? host : 'localhost'}`;
}
