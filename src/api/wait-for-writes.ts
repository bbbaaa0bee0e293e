import type { Response } from 'express';
import type { TenantCall } from './route.ts';
import { LIMITS } from './schemas/value-limits.ts';

/**
 * Longest time for which a query waits for the background work of the writes that its token names (ms). After that it
 * answers without waiting further.
 */
export const TOKEN_WAIT_MS = 2_000;

/**
 * Returns how long an answer may wait for background work (ms); 0 to answer at once. The parameter `wait` has priority
 * over the header `Prefer: wait`, which counts seconds (RFC 7240) and is cut to the greatest `wait`. Without both it is
 * `OM_ADD_WAIT_MS`.
 * @param wait the parameter of the query string (ms); undefined if it is not given
 */
export function waitMsOf({ api, request }: TenantCall, wait: number | undefined): number {
  if (wait !== undefined) return wait;
  const preferred = /(?:^|,) *wait *= *(\d{1,5}) *(?:[,;]|$)/i.exec(request.get('prefer') ?? '')?.[1];
  return preferred === undefined ? api.engine.config.OM_ADD_WAIT_MS : Math.min(Number(preferred) * 1000, LIMITS.waitMs);
}

/**
 * Waits until the background work of the writes that a token names is finished. Returns true if it is, and false if
 * `timeoutMs` has passed, the client left or the server stops; the writes are stored in any case.
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
 * Makes a signal that aborts when the client's connection closes before the answer was written. It does not abort if
 * the connection was already closed at the call, nor after a complete answer: each abort makes an error with a stack,
 * which takes longer than routing the request.
 */
export function clientGone(response: Response): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => response.writableFinished || gone.abort());
  return gone.signal;
}
