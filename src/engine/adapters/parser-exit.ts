import { DocumentError } from '../documents/document-error.ts';
import { EngineError } from '../errors.ts';

/**
 * The reason why a child process is gone. The parent killed it: `stopped`, `aborted`, `time`, `output` and `reply`, as
 * in `KillReason`. Or it died: `memory`, of a full heap or too much memory; `crashed`, of anything else.
 */
export type ParserExit = 'stopped' | 'aborted' | 'time' | 'output' | 'reply' | 'memory' | 'crashed';

/**
 * The reason why the parent killed a child: `time`, a document took too long; `output`, its reply was too large;
 * `reply`, a reply was malformed, came unasked, or there were too many; `abort`, the caller's signal aborted; `stop`,
 * the pool had no use for the child, it did not get ready in time, or `onPage` threw.
 */
export type KillReason = 'time' | 'output' | 'reply' | 'abort' | 'stop';

/**
 * Signals by which V8 ends a process whose heap is full or that asked for too large a piece, and by which the watchdog
 * does.
 */
const MEMORY_SIGNALS: ReadonlySet<NodeJS.Signals> = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL']);

/**
 * Creates the error for the caller whose document a child read when it ended.
 * @param killedFor undefined if the parent did not kill the child
 * @param signal the signal that ended the child; null if it exited by itself
 */
export function errorOfExit(killedFor: KillReason | undefined, signal: NodeJS.Signals | null): Error {
  switch (killedFor) {
    case 'time':
      return new DocumentError('document_too_complex', 'Reading the document took too long');
    case 'output':
      return new DocumentError('document_too_large', 'The document holds more text than is allowed');
    case 'abort':
      return aborted();
    case 'stop':
      return new EngineError('unavailable', 'the reading of documents was stopped');
    case 'reply':
      return crashed();
    case undefined:
      return signal !== null && MEMORY_SIGNALS.has(signal)
        ? new DocumentError('document_too_complex', 'Reading the document took too much memory')
        : crashed();
  }
}

/** Names the end of a child for `ParserProcess.ended`. Parameters are those of `errorOfExit`. */
export function exitOf(killedFor: KillReason | undefined, signal: NodeJS.Signals | null): ParserExit {
  if (killedFor === 'stop') return 'stopped';
  if (killedFor === 'abort') return 'aborted';
  return killedFor ?? (signal !== null && MEMORY_SIGNALS.has(signal) ? 'memory' : 'crashed');
}

/** Creates the error for a document whose reading the caller gave up. */
export function aborted(): EngineError {
  return new EngineError('unavailable', 'the reading of the document was aborted');
}

function crashed(): DocumentError {
  return new DocumentError('parser_crashed', 'The process that read the document ended unexpectedly');
}
