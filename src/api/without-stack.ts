import { EngineError } from '../engine/index.ts';

/**
 * Makes an `EngineError` without a stack trace, for an error that thousands of clients may cause at once. Nobody reads
 * these traces, and to make them took most of the time that the event loop was held.
 */
export function withoutStack(...parts: ConstructorParameters<typeof EngineError>): EngineError {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new EngineError(...parts);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
