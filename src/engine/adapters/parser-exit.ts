import { DocumentError } from '../documents/document-error.ts';
import { EngineError } from '../errors.ts';

/**
 * The reason why a parser's child process has ended. `stopped`, `aborted`, `time`, `output` and `reply`: the parent
 * killed it (`KillReason`). `memory`: its heap was full or it used too much memory. `crashed`: any other reason.
 */
export type ParserExit = 'stopped' | 'aborted' | 'time' | 'output' | 'reply' | 'memory' | 'crashed';

/**
 * The reason why the parent killed a parser's child process: `time`, a document took too long; `output`, its reply was
 * too large; `reply`, a reply was malformed or unexpected, or there were too many; `abort`, the caller's signal
 * aborted; `stop`, the pool no longer needed the child, it did not get ready in time, or `onPage` threw.
 */
export type KillReason = 'time' | 'output' | 'reply' | 'abort' | 'stop';

/**
 * Signals that mean that a child ran out of memory: V8 ends a process with one of them if the heap is full or too large
 * a block was requested, and the child's watchdog does so, too.
 */
const MEMORY_SIGNALS: ReadonlySet<NodeJS.Signals> = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL']);

/**
 * Creates the error for the caller whose document a child was reading when the child ended.
 * @param killedFor undefined if the parent did not kill the child
 * @param signal signal that ended the child; null if it exited by itself
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

/**
 * Returns the reason with which `ParserProcess.ended` resolves.
 * @param killedFor undefined if the parent did not kill the child
 * @param signal signal that ended the child; null if it exited by itself
 */
export function exitOf(killedFor: KillReason | undefined, signal: NodeJS.Signals | null): ParserExit {
  if (killedFor === 'stop') return 'stopped';
  if (killedFor === 'abort') return 'aborted';
  return killedFor ?? (signal !== null && MEMORY_SIGNALS.has(signal) ? 'memory' : 'crashed');
}

/** Creates the error for a document whose reading the caller aborted. */
export function aborted(): EngineError {
  return new EngineError('unavailable', 'the reading of the document was aborted');
}

function crashed(): DocumentError {
  return new DocumentError('parser_crashed', 'The process that read the document ended unexpectedly');
}
