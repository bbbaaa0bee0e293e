import { STATUS_CODES } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import { EngineError, type ErrorCode, type Logger } from '../engine/index.ts';
import { localsOf, sendJson } from './reply.ts';
import { HTTP_STATUS, type Problem } from './schemas/problem.ts';

/**
 * Makes the body of the reply to a failed request. If the error is a bug of the server (code `internal`), the body
 * holds neither its message nor its details.
 */
export function problemOf(error: EngineError, requestId: string): Problem {
  const status = HTTP_STATUS[error.code];
  return {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail: detailOf(error),
    code: error.code,
    ...(error.mayBeWritten ? { may_be_written: true } : {}),
    ...(error.details === undefined || error.code === 'internal' ? {} : { errors: error.details }),
    request_id: requestId,
  };
}

/**
 * Returns the error message that a client may read. For a bug of the server (code `internal`) it is a fixed text, since
 * only operators may see the real message.
 */
export function detailOf(error: EngineError): string {
  return error.code === 'internal'
    ? 'something went wrong here; the log has more under this request id'
    : error.message;
}

/** Tells whether a text is an error code of the engine. All of them have an HTTP status. */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(HTTP_STATUS, code);
}

/**
 * Turns any thrown value into an `EngineError`: an EngineError stays itself, a `URIError` (which Express throws for a
 * malformed percent-escape in a path) becomes `invalid`, and everything else `internal`.
 */
export function toEngineError(error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  if (error instanceof URIError)
    return new EngineError('invalid', 'the path holds a malformed percent-escape', { cause: error });
  return new EngineError('internal', error instanceof Error ? error.message : String(error), { cause: error });
}

/**
 * Makes the last middleware: the only place where an error becomes a reply and, if the server caused it, a line in the
 * log. If the reply has begun already, the connection is closed. If it is closed already, nothing is done, and nothing
 * is logged.
 */
export function answerErrors(logger: Logger) {
  return (thrown: unknown, _request: Request, response: Response, _next: NextFunction): void => {
    if (response.destroyed) return;
    const error = toEngineError(thrown);
    const status = HTTP_STATUS[error.code];
    const { requestId, challenge = 'Bearer realm="cairn"' } = localsOf(response);
    logFailure(logger, error, requestId);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (status === 401 && !response.hasHeader('www-authenticate')) response.setHeader('www-authenticate', challenge);
    if (error.retryAfterMs !== undefined)
      response.setHeader('retry-after', Math.max(1, Math.ceil(error.retryAfterMs / 1000)));
    sendJson(response, status, problemOf(error, requestId), 'application/problem+json');
  };
}

/**
 * Logs an error that the server caused (status 500 and up), and ignores all others: a caller learns of its own errors
 * from the reply.
 */
export function logFailure(logger: Logger, error: EngineError, requestId: string): void {
  const { code, message, cause } = error;
  if (HTTP_STATUS[code] < 500) return;
  const stack = cause instanceof Error ? cause.stack : error.stack;
  logger[code === 'internal' ? 'error' : 'warn']({ requestId, code, message, stack }, 'request_failed');
}
