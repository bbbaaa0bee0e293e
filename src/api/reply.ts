import type { Response } from 'express';

/** What a request carries from middleware to middleware. */
export interface Locals {
  requestId: string;
  startedAt: number;
  /** The pattern that matched, never the path itself: it becomes a label and a log field. */
  route: string;
  /** Of the job that it made, if it made one. */
  jobId?: string;
  /** Of its trace, if it is traced. */
  traceId?: string;
}

export function localsOf(response: Response): Locals {
  return response.locals as Locals;
}

/** Rather than Express's `json`, which looks for settings, an ETag and freshness on every reply. */
export function sendJson(response: Response, status: number, body: unknown, mediaType = 'application/json'): void {
  response.statusCode = status;
  response.setHeader('content-type', `${mediaType}; charset=utf-8`);
  response.end(JSON.stringify(body));
}
