import type { IncomingMessage } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import { type Engine, EngineError, isLoopback } from '../../engine/index.ts';

/** Methods that change nothing. A page of another origin cannot read their replies. */
export const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * Makes the middleware that, while no key is configured, refuses requests of other origins' web pages except GET and
 * HEAD. A browser lets every page send a form, a body of plain text or no body to this machine without asking the
 * server first. A key, which the page does not know, would stop such requests.
 * @throws EngineError `forbidden`
 */
export function refuseForeignPagesWhileOpen(engine: Engine) {
  return (request: Request, _response: Response, next: NextFunction): void => {
    if (!SAFE_METHODS.has(request.method) && engine.control.isOpen() && isOfForeignPage(request)) {
      throw new EngineError(
        'forbidden',
        'no key is configured, so web pages of other origins are refused (Origin, Sec-Fetch-Site): ' +
          'configure a key, and name the origin in OM_CORS_ORIGINS',
      );
    }
    next();
  };
}

/**
 * Tells whether a page of another origin sent the request, as far as a browser says so. Browsers set `Sec-Fetch-Site`
 * and `Origin` themselves, and no page can change them; other clients send neither, and the result is false.
 * `Sec-Fetch-Site` must be `same-origin`, or `none` for what the user did in the browser itself. `Origin` must be the
 * address to which the request was sent. Another loopback origin, such as a development server that forwards requests,
 * is accepted only together with such a `Sec-Fetch-Site`: without it, it may be the page of another program on this
 * machine.
 */
export function isOfForeignPage(request: IncomingMessage): boolean {
  const { 'sec-fetch-site': sites = [], origin: origins = [] } = request.headersDistinct;
  const site = sites[0]?.toLowerCase();
  if (sites.length > 1 || (site !== undefined && site !== 'same-origin' && site !== 'none')) return true;
  if (origins.length === 0) return false;
  const origin = URL.parse(origins[0]!);
  // `null` is the origin of sandboxed frames and local files. It is no URL, so it is foreign like all malformed ones.
  if (origins.length > 1 || origin === null || !/^https?:$/.test(origin.protocol)) return true;
  if (origin.host === request.headers.host?.toLowerCase()) return false;
  return site === undefined || !isLoopback(origin.hostname);
}
