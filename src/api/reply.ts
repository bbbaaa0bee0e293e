import type { Response } from 'express';
import type { RateClass } from '../engine/index.ts';
import { hasJsonText, jsonPieces } from './json-pieces.ts';

/** Data of a request that middleware and handlers share, in Express's `response.locals`. */
export interface Locals {
  /**
   * Id of the request in its reply and in the log: the client's `x-request-id` if that is well-formed, else a new one.
   */
  requestId: string;
  /** Time at which the request arrived, as `performance.now()`. */
  startedAt: number;
  /** Pattern of the route that matched, never the path itself: it becomes a metric label and a log field. */
  route: string;
  /** Id of the job that the request made; undefined if it made none. */
  jobId?: string;
  /** Id of the key that was admitted; undefined before that, and on a route that anyone may call. */
  keyId?: string;
  /** Id of the tenant to which the request came; undefined where `keyId` is. */
  tenantId?: string;
  /** Value of `WWW-Authenticate` in a reply 401; `Bearer realm="cairn"` by default. */
  challenge?: string;
  /**
   * Called to end the reply if the caller is no longer admitted before it has ended, as its key was revoked or has
   * expired, or its session has ended. If it is undefined, the connection is closed.
   */
  onAdmissionLost?: () => void;
  /** Id of the request's trace; undefined if it is not traced. */
  traceId?: string;
  /**
   * For each rate limit from which the request took tokens: how many are left, and its entries in the reply's headers.
   */
  limits?: Map<RateClass, { readonly remaining: number; readonly policy: string; readonly rest: string }>;
}

/** Returns the shared data of a response's request, which `recordRequests` sets before any handler runs. */
export function localsOf(response: Response): Locals {
  return response.locals as Locals;
}

/**
 * Answers with JSON. Express's `json` is not used, since it looks for settings, an ETag and freshness on every reply.
 * ASCII, which most replies are, has the same bytes in Latin-1, and Node then writes up to 16 KB to the socket at once.
 * For UTF-8 it reserves three bytes a character, and most answers to queries would take a slower path.
 */
export function sendJson(response: Response, status: number, body: unknown, mediaType = 'application/json'): void {
  const text = hasJsonText(body) ? [...jsonPieces(body)].join('') : JSON.stringify(body);
  const bytes = Buffer.byteLength(text);
  response.statusCode = status;
  response.setHeader('content-type', `${mediaType}; charset=utf-8`);
  response.setHeader('content-length', bytes);
  response.end(text, bytes === text.length ? 'latin1' : 'utf8');
}
