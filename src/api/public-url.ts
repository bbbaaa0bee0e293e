import type { IncomingMessage } from 'node:http';
import type { Config } from '../engine/index.ts';

/** Matches a Host header: a name or an address, and a port. Other bytes could end the quotes of a challenge. */
const HOST = /^[\w.:[\]-]{1,255}$/;

/** Address of this server without a slash at its end, as the settings or else the request name it. */
export function publicUrl({ headers }: IncomingMessage, { OM_PUBLIC_URL: url }: Config): string {
  if (url !== undefined) return url.replace(/\/+$/, '');
  const { host = '' } = headers;
  return `http://${HOST.test(host) ? host : 'localhost'}`;
}
