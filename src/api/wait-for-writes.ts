import type { Response } from 'express';
import type { TenantCall } from './route.ts';
import { LIMITS } from './schemas/limits.ts';

/** Longest time that a query waits for the writes behind its token, ms; then it answers without them. */
export const TOKEN_WAIT_MS = 2_000;

/**
 * Time that an answer is to wait for the finished work, ms; 0 to answer at once. The parameter `?wait` has priority
 * over `Prefer: wait`, which counts seconds (RFC 7240), and both have priority over the setting `OM_ADD_WAIT_MS`.
 * @param wait the parameter of the query string, ms; undefined if it is not given
 */
export function waitMsOf({ api, request }: TenantCall, wait: number | undefined): number {
  if (wait !== undefined) return wait;
  const preferred = /(?:^|,) *wait *= *(\d{1,5}) *(?:[,;]|$)/i.exec(request.get('prefer') ?? '')?.[1];
  return preferred === undefined ? api.engine.config.OM_ADD_WAIT_MS : Math.min(Number(preferred) * 1000, LIMITS.waitMs);
}

/**
 * Waits until the writes behind a token are finished, at most `timeoutMs`. Resolves to true if they are, and to false
 * if the time ran out, the client left or the server stops; the writes themselves are safe in any case.
 * @throws EngineError `invalid` for a malformed token, or one of another tenant
 */
export async function waitForWrites(
  { api, tenant, response }: TenantCall,
  token: string,
  timeoutMs: number,
): Promise<boolean> {
  const signal = AbortSignal.any([clientGone(response), api.stop]);
  try {
    return await tenant.waitFor(token, timeoutMs, signal);
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

/**
 * Makes a signal that aborts when the client's connection closes before the answer was written; it never aborts if the
 * connection had closed before the call. An abort after each answer would make an error with a stack for nobody, which
 * takes longer than to route the request.
 */
export function clientGone(response: Response): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => response.writableFinished || gone.abort());
  return gone.signal;
}
