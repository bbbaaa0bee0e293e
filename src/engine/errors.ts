/**
 * Names the kind of an error: the API turns it into a status, and a worker decides by it whether to try again.
 * `invalid`: a value is wrong; `unauthenticated`: no valid key; `forbidden`: the key may not do this; `not_found`: what
 * the request names does not exist, or the caller may not see it; `conflict`: the request does not fit the present
 * state; `too_large`: a body, line or file has too many bytes; `unsupported`: a media type or charset that is not read;
 * `unprocessable`: the privacy policy refuses a text, an Idempotency-Key came with another body, or a file is damaged
 * or from another version; `rate_limited`: the caller made too many requests, or a provider asks for a pause;
 * `internal`: a bug; `unavailable`: try again later; `storage_full`: the disk or the tenant's quota is full.
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

/** What an `EngineError` can hold beside its code and message. */
export interface EngineErrorOptions {
  readonly cause?: unknown;
  /**
   * Time that a caller should wait before it tries again, in ms; only with `rate_limited`, `unavailable` and
   * `storage_full`, and absent if no time is known.
   */
  readonly retryAfterMs?: number;
  /** Problems of a request or of the settings: one line each, which names the field. Absent if `message` says all. */
  readonly details?: readonly string[];
  /** True if a write may be stored although it rejects with this error: the answer to its commit was lost. */
  readonly mayBeWritten?: boolean;
  /** True if an error of the same cause came before, so that this one need not be logged. */
  readonly isRepeated?: boolean;
}

/**
 * The one error type that crosses the engine's boundary. `message` states what was wrong, for which id, and what is
 * allowed. It never holds content, a query or a key, because it reaches clients and logs.
 */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly code: ErrorCode;
  readonly retryAfterMs: number | undefined;
  readonly details: readonly string[] | undefined;
  readonly mayBeWritten: boolean;
  readonly isRepeated: boolean;

  constructor(code: ErrorCode, message: string, options: EngineErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
    this.details = options.details;
    this.mayBeWritten = options.mayBeWritten ?? false;
    this.isRepeated = options.isRepeated ?? false;
  }
}

/** Whether a value that was thrown is an `EngineError`, with the code `code` if one is given. */
export function isEngineError(error: unknown, code?: ErrorCode): error is EngineError {
  return error instanceof EngineError && (code === undefined || error.code === code);
}

/**
 * States a condition that only a bug can break.
 * @param message what is then wrong, without content: it goes into the error
 * @throws EngineError `internal` if the condition is falsy
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new EngineError('internal', `assertion failed: ${message}`);
}

/** An error in a form that `postMessage` carries, which drops the class and `cause`. */
export interface SerialisedError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryAfterMs?: number | undefined;
  readonly details?: readonly string[] | undefined;
  readonly mayBeWritten?: true;
  readonly isRepeated?: true;
}

/**
 * Turns anything that was thrown into plain data. Anything but an `EngineError` becomes `internal`; its message is kept
 * for operators.
 */
export function serialiseError(error: unknown): SerialisedError {
  if (error instanceof EngineError) {
    const { code, message, retryAfterMs, details, mayBeWritten, isRepeated } = error;
    const flags = { ...(mayBeWritten ? { mayBeWritten } : {}), ...(isRepeated ? { isRepeated } : {}) };
    return { code, message, retryAfterMs, details, ...flags };
  }
  return { code: 'internal', message: error instanceof Error ? error.message : String(error) };
}

/**
 * Makes an `EngineError` from the data of `serialiseError`, for example in another thread. Stack and cause are lost.
 */
export function reviveError(error: SerialisedError): EngineError {
  return new EngineError(error.code, error.message, {
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
    ...(error.details === undefined ? {} : { details: error.details }),
    ...(error.mayBeWritten === true ? { mayBeWritten: true } : {}),
    ...(error.isRepeated === true ? { isRepeated: true } : {}),
  });
}

/** Makes the error `not_found` for a key that no stored item has. */
export function noItem(): EngineError {
  return new EngineError('not_found', 'no item with this key');
}
