import type { Response } from 'express';
import type { TenantCall } from './route.ts';
import { LIMITS } from './schemas/limits.ts';

/** How long a query waits for the writes behind its token (ms); after that it answers from what is there. */
export const TOKEN_WAIT_MS = 2_000;

/**
 * How long a caller wants its answer to wait for the finished work (ms): `?wait` goes before `Prefer: wait`, which counts seconds
 * (RFC 7240), and that before the setting.
 * @param wait what the query string says
 */
export function waitMsOf({ api, request }: TenantCall, wait: number | undefined): number {
  if (wait !== undefined) return wait;
  const preferred = /(?:^|,) *wait *= *(\d{1,5}) *(?:[,;]|$)/i.exec(request.get('prefer') ?? '')?.[1];
  return preferred === undefined ? api.engine.config.OM_ADD_WAIT_MS : Math.min(Number(preferred) * 1000, LIMITS.waitMs);
}

/**
 * Waits until the writes behind a token are finished, at most `timeoutMs`. False if time ran out, the client left or the
 * server stops: the writes themselves are safe either way.
 * @throws EngineError `invalid` for a token this tenant did not give out
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

/** Aborts when nobody is left to read the answer. */
export function clientGone(response: Response): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  return gone.signal;
}
