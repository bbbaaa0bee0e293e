import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { EngineError, isEngineError } from '../../engine/index.ts';
import { detailOf, logFailure, toEngineError } from '../http-errors.ts';
import { localsOf } from '../reply.ts';
import type { TenantCall } from '../route.ts';

/**
 * Time after which the signal that tools and prompts get aborts (ms). Many clients give up after 60 s. Resources get no
 * signal, so they may take longer.
 */
export const DEADLINE_MS = 20_000;

/**
 * Returns the text of an error for the language model that called: what was wrong, what is allowed, and what to do
 * next. Errors that the server caused are logged. For a bug (`internal`), the text has only the id of the request, by
 * which an operator finds the error in the log.
 */
export function wordsFor(thrown: unknown, { api, response }: TenantCall): string {
  const error = isTimeout(thrown)
    ? new EngineError('unavailable', `this took longer than ${DEADLINE_MS / 1000} s and was given up; ask for less`)
    : toEngineError(thrown);
  const { requestId } = localsOf(response);
  if (!isGone(thrown)) logFailure(api.engine.logger, error, requestId);
  if (error.code === 'internal') return `${detailOf(error)} (${requestId})`;
  return `${detailOf(error)}${adviceFor(error)}`;
}

/**
 * Makes an error of the protocol with the words of `wordsFor`. Its code is InvalidParams for `invalid` and `conflict`,
 * and else InternalError.
 */
export function protocolError(thrown: unknown, call: TenantCall): ProtocolError {
  const isOfCaller = isEngineError(thrown) && (thrown.code === 'invalid' || thrown.code === 'conflict');
  const code = isOfCaller ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
  return new ProtocolError(code, wordsFor(thrown, call));
}

/** Whether a call ended because its client has left, which is no failure. */
function isGone(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === 'AbortError';
}

function isTimeout(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === 'TimeoutError';
}

function adviceFor({ code, retryAfterMs }: EngineError): string {
  if (retryAfterMs !== undefined) return `; try again in ${Math.max(1, Math.ceil(retryAfterMs / 1000))} s`;
  if (code === 'too_large') return '; the tool ingest takes longer texts';
  if (code === 'not_found') return '; recall and list_recent show ids of memories';
  return '';
}
