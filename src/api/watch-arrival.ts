/** Ends the arrival of an upload that is too long or too slow, or whose connection breaks off. */
import type { IncomingMessage } from 'node:http';
import { EngineError } from '../engine/index.ts';
import { withoutStack } from './without-stack.ts';

/** Interval (ms) in which a client must send at least 32 KiB (`MIN_BYTES`) of a body, or reach its end. */
const IDLE_MS = 30_000;
const MIN_BYTES = 32 * 1024;
/**
 * Longest time of a whole upload (ms): `BASE_MS` and, for each MB, `MS_PER_MB`. An upload that does not announce its
 * size gets the time of the largest one.
 */
const BASE_MS = 60_000;
const MS_PER_MB = 16_000;

/**
 * Greatest sizes of an upload in bytes: of the document in it (`fileBytes`), which error messages name, and of the
 * whole body (`bodyBytes`), which is the one that is enforced here.
 */
export interface BodyLimits {
  readonly fileBytes: number;
  readonly bodyBytes: number;
}

/** Makes the error for a document that is larger than `fileBytes`. */
export function tooLarge(fileBytes: number): EngineError {
  return new EngineError('too_large', `the document is over ${fileBytes / 1024 / 1024} MB, the most that is taken in`);
}

/**
 * Calls `onFailure` if a body exceeds `bodyBytes`, sends less than 32 KiB in 30 s, takes too long in all, or breaks
 * off. It may call it more than once. It makes the request flow (`data`), so the caller must begin to read or pipe the
 * request in the same turn.
 * @returns a function that ends the watch; the watch also ends with the body
 */
export function watchArrival(
  request: IncomingMessage,
  { fileBytes, bodyBytes }: BodyLimits,
  onFailure: (error: EngineError) => void,
): () => void {
  const length = request.headers['content-length'];
  const announced = length === undefined ? undefined : Number(length);
  let size = 0;
  let sizeBefore = 0;
  const onData = (chunk: Buffer) => {
    size += chunk.length;
    if (size > bodyBytes) onFailure(tooLarge(fileBytes));
  };
  const onClose = () => onFailure(withoutStack('invalid', 'the connection broke off before the body was complete'));
  const giveUp = (problem: string) => onFailure(new EngineError('invalid', `the body ${problem}`));
  const look = () => {
    if (size - sizeBefore < MIN_BYTES) giveUp(`stopped arriving: under ${MIN_BYTES} bytes came in ${IDLE_MS / 1000} s`);
    sizeBefore = size;
  };
  const totalMs = BASE_MS + Math.ceil((announced ?? bodyBytes) / 1024 / 1024) * MS_PER_MB;
  const idle = setInterval(look, IDLE_MS);
  const total = setTimeout(() => giveUp(`did not arrive within ${totalMs / 1000} s`), totalMs);
  const stop = () => {
    clearInterval(idle);
    clearTimeout(total);
    request.off('data', onData).off('end', stop).off('close', onClose);
  };
  request.on('data', onData).on('end', stop).on('close', onClose);
  // It may have closed while the upload was prepared, and emits no further event then.
  if (request.destroyed) onClose();
  return stop;
}
