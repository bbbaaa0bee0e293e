import type { IncomingMessage } from 'node:http';
import { EngineError } from '../../engine/index.ts';
import { isOfForeignPage, SAFE_METHODS } from '../middleware/refuse-foreign-pages.ts';

/** Header that the console sends with every write. A form cannot send it, and no other origin's script may. */
const CONSOLE_HEADER = 'x-cairn-console';

/**
 * Returns the secret of the session that a request carries as a cookie; undefined without one, and for a request of
 * another origin's page, which gains nothing from a cookie that the browser added (`OM_CORS_ORIGINS` or not).
 * @throws EngineError `forbidden` for a write without `CONSOLE_HEADER`
 */
export function readSession(request: IncomingMessage): string | undefined {
  const secret = cookieOf(request);
  if (secret === undefined || isOfForeignPage(request)) return undefined;
  if (!SAFE_METHODS.has(request.method ?? '')) requireConsoleHeader(request);
  return secret;
}

/** Throws EngineError `forbidden` for a request that a page other than the console may have sent. */
export function requireConsoleHeader(request: IncomingMessage): void {
  if (request.headers[CONSOLE_HEADER] === undefined || isOfForeignPage(request))
    throw new EngineError('forbidden', `a session may write from the console alone, which sends ${CONSOLE_HEADER}`);
}

/**
 * Makes the `set-cookie` of a session. Scripts cannot read it, and no other site's page makes the browser send it. It
 * is `Secure` if the page was loaded by HTTPS, as `Origin` says, which a browser sets itself, or as `isSecure` says.
 * @param secret the secret of the session; '' takes the cookie away
 * @param expiresAt Unix ms
 */
export function sessionCookie(
  request: IncomingMessage,
  { secret, expiresAt }: { readonly secret: string; readonly expiresAt: number },
  isSecure = request.headers.origin?.startsWith('https:') ?? false,
): string {
  const parts = [`${cookieName(request)}=${secret}`, 'Path=/', 'HttpOnly', 'SameSite=Strict'];
  parts.push(`Expires=${new Date(expiresAt).toUTCString()}`, ...(isSecure ? ['Secure'] : []));
  return parts.join('; ');
}

/** The name holds the port: browsers share the cookies of a host between all its ports, and so between its services. */
function cookieName(request: IncomingMessage): string {
  return `cairn_session_${request.socket.localPort ?? 0}`;
}

function cookieOf(request: IncomingMessage): string | undefined {
  return cookieNamed(request, cookieName(request));
}

/** Returns the value of a cookie of the request; undefined if it is absent or empty. */
export function cookieNamed(request: IncomingMessage, cookie: string): string | undefined {
  const name = `${cookie}=`;
  const cookies = request.headers.cookie?.split(';').map((cookie) => cookie.trim()) ?? [];
  const value = cookies.find((cookie) => cookie.startsWith(name))?.slice(name.length);
  return value === '' ? undefined : value;
}
