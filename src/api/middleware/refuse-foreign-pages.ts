import type { IncomingMessage } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import { type Engine, EngineError, isLoopback } from '../../engine/index.ts';

/** Methods that change nothing, and whose replies a page of another origin cannot read. */
export const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * Middleware that refuses requests of other origins' web pages while no key is configured. A browser lets every page
 * send a form, a body of plain text or no body at all to this machine, without asking first; only a key, which such a
 * page does not know, would tell it from the user.
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
 * True if a browser says that a page of another origin sent the request. Browsers set `Sec-Fetch-Site` and `Origin`
 * themselves, and no page can change them; clients that are no browsers send neither and are not judged.
 *
 * `Sec-Fetch-Site` must be `same-origin` or `none`, which is what the user did in the browser itself. `Origin` must
 * name the address that was asked. Another loopback origin, such as a development server that passes requests on,
 * counts only together with such a `Sec-Fetch-Site`: on its own it is a page of another program on this machine.
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
