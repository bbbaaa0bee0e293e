import type { RequestHandler } from 'express';

/**
 * Headers of every reply, for browsers. Replies are data of one caller: no cache keeps them, no page of another origin
 * loads them as a script, picture or frame, and what a browser shows of them runs nothing. A page of this server
 * replaces the content security policy by its own (page-headers.ts). CORS is not affected: it concerns requests by
 * scripts, `cross-origin-resource-policy` those without.
 */
const HEADERS = new Map([
  ['cache-control', 'no-store'],
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
  ['referrer-policy', 'no-referrer'],
  ['x-content-type-options', 'nosniff'],
  ['x-frame-options', 'DENY'],
]);

/** Middleware that sets the headers of every reply for browsers. */
export const setSecurityHeaders: RequestHandler = (_request, response, next) => {
  response.setHeaders(HEADERS);
  next();
};
