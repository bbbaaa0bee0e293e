import type { IncomingMessage } from 'node:http';
import { EngineError } from '../../engine/index.ts';
import { isOfForeignPage, SAFE_METHODS } from '../middleware/refuse-foreign-pages.ts';

/** Header that the console sends with every write. A form cannot send it, and scripts of other origins may not. */
const CONSOLE_HEADER = 'x-cairn-console';

/**
 * Returns the secret of the browser session from the request's cookie. It is undefined if there is no cookie. It is
 * also undefined for a request of another origin's page, even of one that `OM_CORS_ORIGINS` allows: such a page must
 * not profit from a cookie that the browser added.
 * @throws EngineError `forbidden` for a write without the header `x-cairn-console`
 */
export function readSession(request: IncomingMessage): string | undefined {
  const secret = cookieOf(request);
  if (secret === undefined || isOfForeignPage(request)) return undefined;
  if (!SAFE_METHODS.has(request.method ?? '')) requireConsoleHeader(request);
  return secret;
}

/**
 * Throws EngineError `forbidden` for a request without the header `x-cairn-console`, or from another origin's page: a
 * page other than the console may have sent it.
 */
export function requireConsoleHeader(request: IncomingMessage): void {
  if (request.headers[CONSOLE_HEADER] === undefined || isOfForeignPage(request))
    throw new EngineError('forbidden', `a session may write from the console alone, which sends ${CONSOLE_HEADER}`);
}

/**
 * Makes the `set-cookie` of a session. Scripts cannot read the cookie, and a browser does not send it with requests of
 * other sites' pages. By default it is `Secure` if the request's `Origin` is HTTPS.
 * @param secret the secret of the session; '' removes the cookie
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

/**
 * Returns the name of the cookie. It contains the port, since browsers share the cookies of a host between all its
 * ports, and so between its services.
 */
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
