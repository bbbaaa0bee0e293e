import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { EngineError, isEngineError } from '../../engine/index.ts';
import { detailOf, logFailure, toEngineError } from '../http-errors.ts';
import { localsOf } from '../reply.ts';
import type { TenantCall } from '../route.ts';

/** Longest time that a tool, a resource or a prompt may take (ms). Many clients give up after 60 s. */
export const DEADLINE_MS = 20_000;

/**
 * Returns a failure in words for the model: what was wrong, what is allowed, and what to do next. Failures of the
 * server are logged. For a bug, the words say only the id of the request, under which the log has it.
 */
export function wordsFor(thrown: unknown, { api, response }: TenantCall): string {
  const error = isTimeout(thrown)
    ? new EngineError('unavailable', `this took longer than ${DEADLINE_MS / 1000} s and was given up; ask for less`)
    : toEngineError(thrown);
  const { requestId } = localsOf(response);
  logFailure(api.engine.logger, error, requestId);
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

function isTimeout(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === 'TimeoutError';
}

function adviceFor({ code, retryAfterMs }: EngineError): string {
  if (retryAfterMs !== undefined) return `; try again in ${Math.max(1, Math.ceil(retryAfterMs / 1000))} s`;
  if (code === 'too_large') return '; the tool ingest takes longer texts';
  if (code === 'not_found') return '; recall and list_recent show ids of memories';
  return '';
}
