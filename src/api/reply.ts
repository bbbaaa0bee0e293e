import type { Response } from 'express';
import type { RateClass } from '../engine/index.ts';

/** Data of a request that middleware and handlers share, in Express's `response.locals`. */
export interface Locals {
  /** Id of the request in its reply and in the log: the client's `x-request-id` if that is well-formed, else new. */
  requestId: string;
  /** Time at which the request arrived, as `performance.now()`. */
  startedAt: number;
  /** Pattern of the route that matched, never the path itself: it becomes a metric label and a log field. */
  route: string;
  /** Id of the job that the request made, if any. */
  jobId?: string;
  /** Value of `WWW-Authenticate` in a reply that asks for a key; a plain one by default. */
  challenge?: string;
  /** Ends the reply in its own way if its caller's key is revoked or expires; without it the connection is cut. */
  onAdmissionLost?: () => void;
  /** Id of the request's trace, if it is traced. */
  traceId?: string;
  /** What the reply's headers say of each limit of rates, with what was left of it. */
  limits?: Map<RateClass, { readonly remaining: number; readonly policy: string; readonly rest: string }>;
}

/** Returns the data of a response's request, set by `recordRequests` before any handler runs. */
export function localsOf(response: Response): Locals {
  return response.locals as Locals;
}

/**
 * Answers with JSON. Express's `json` is not used: it looks for settings, an ETag and freshness on every reply. ASCII,
 * which most replies are, is the same bytes in Latin-1, and Node then writes up to 16 KB to the socket at once. For
 * UTF-8 it reserves three bytes a character, and most answers to queries would take a slower path.
 */
export function sendJson(response: Response, status: number, body: unknown, mediaType = 'application/json'): void {
  const text = JSON.stringify(body);
  const bytes = Buffer.byteLength(text);
  response.statusCode = status;
  response.setHeader('content-type', `${mediaType}; charset=utf-8`);
  response.setHeader('content-length', bytes);
  response.end(text, bytes === text.length ? 'latin1' : 'utf8');
}
