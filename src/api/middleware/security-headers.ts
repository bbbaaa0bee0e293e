import type { RequestHandler } from 'express';

/**
 * Headers of every reply, for browsers. Replies are data of one caller: no cache keeps them, no page of another origin
 * loads them as a script, picture or frame, and the browser runs nothing in them. An HTML page of this server has a
 * content security policy of its own (page-headers.ts). CORS is not affected: it is about requests of scripts,
 * `cross-origin-resource-policy` about requests without a script.
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
