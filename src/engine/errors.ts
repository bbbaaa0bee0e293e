/**
 * The one error type that crosses the engine's boundary. `message` says what was wrong, for which id, and what is
 * allowed; it never holds content, a query or a key, because it reaches clients and logs.
 */
export type ErrorCode =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'too_large'
  | 'unsupported'
  | 'unprocessable'
  | 'rate_limited'
  | 'internal'
  | 'unavailable'
  | 'storage_full';

export interface EngineErrorOptions {
  readonly cause?: unknown;
  /** Milliseconds a caller should wait before it tries again; only with `rate_limited` and `unavailable`. */
  readonly retryAfterMs?: number;
  /** One line a problem, each naming the field, when a request had several. */
  readonly details?: readonly string[];
}

export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly code: ErrorCode;
  readonly retryAfterMs: number | undefined;
  readonly details: readonly string[] | undefined;

  constructor(code: ErrorCode, message: string, options: EngineErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
    this.details = options.details;
  }
}

export function isEngineError(error: unknown, code?: ErrorCode): error is EngineError {
  return error instanceof EngineError && (code === undefined || error.code === code);
}

/** States what only a bug could break. Throws `internal`. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new EngineError('internal', `assertion failed: ${message}`);
}

/** What an error looks like on its way through `postMessage`, where class and `cause` are lost. */
export interface SerialisedError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryAfterMs?: number | undefined;
  readonly details?: readonly string[] | undefined;
}

/** Anything that is not an `EngineError` becomes `internal`, with the original message kept for operators. */
export function serialiseError(error: unknown): SerialisedError {
  if (error instanceof EngineError) {
    return { code: error.code, message: error.message, retryAfterMs: error.retryAfterMs, details: error.details };
  }
  return { code: 'internal', message: error instanceof Error ? error.message : String(error) };
}

export function reviveError(error: SerialisedError): EngineError {
  return new EngineError(error.code, error.message, {
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
    ...(error.details === undefined ? {} : { details: error.details }),
  });
}
