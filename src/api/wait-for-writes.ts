import type { Response } from 'express';
import { currentShare, isEngineError, type Tenant } from '../engine/index.ts';
import type { TenantCall } from './route.ts';
import { LIMITS } from './schemas/value-limits.ts';
import { createTurnLine } from './turn-line.ts';

/** Queue of the requests whose waits have ended: one poll may end the waits of thousands. */
const waiters = createTurnLine();

/**
 * Longest time for which a query waits for the background work of the writes that its token names (ms). After that it
 * answers without waiting further.
 */
export const TOKEN_WAIT_MS = 2_000;

/**
 * Returns how long an answer may wait for background work (ms); 0 to answer at once. The parameter `wait` has priority
 * over the header `Prefer: wait`, which counts seconds (RFC 7240) and is cut to the greatest `wait`; the reply says in
 * `Preference-Applied` which wait holds. Without both it is `OM_ADD_WAIT_MS`.
 * @param wait the parameter of the query string (ms); undefined if it is not given
 */
export function waitMsOf({ api, request, response }: TenantCall, wait: number | undefined): number {
  if (wait !== undefined) return wait;
  const preferred = preferredWait(request.get('prefer') ?? '');
  if (preferred === undefined) return api.engine.config.OM_ADD_WAIT_MS;
  const seconds = Math.min(preferred, LIMITS.waitMs / 1000);
  response.setHeader('preference-applied', `wait=${seconds}`);
  return seconds * 1000;
}

/**
 * Returns the seconds of the first preference `wait` in a header `Prefer` whose value is a whole number; undefined if
 * there is none. Commas in quoted values separate no preferences.
 */
function preferredWait(header: string): number | undefined {
  const unquoted = header.replaceAll(/"([^"]*)"/g, (_, value: string) => value.replaceAll(/\D/g, '_'));
  const seconds = /(?:^|,)\s*wait\s*=\s*(\d+)\s*(?:[,;]|$)/i.exec(unquoted)?.[1];
  return seconds === undefined ? undefined : Number(seconds);
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
  return waitUnlessAborted(tenant, token, { timeoutMs, signal: AbortSignal.any([clientGone(response), api.stop]) });
}

/**
 * Waits until the background work of the writes that a token names is finished. Returns true if it is, and false if
 * `timeoutMs` has passed or `signal` aborts, also where the wait then throws.
 * @throws EngineError `invalid` for a malformed token, or one of another tenant; `unavailable` if the work cannot be
 *   read
 */
export async function waitUnlessAborted(
  tenant: Tenant,
  token: string,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<boolean> {
  try {
    return await inTurnAfter(tenant.waitFor(token, timeoutMs, signal));
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

/**
 * Waits until the background work of a committed write is finished, and returns what `read` then reads of it. Returns
 * undefined if it is not finished within `timeoutMs` (0 does not wait), the client left or the server stops, and where
 * `unlessUnreadable` does.
 * @throws other errors of `read`
 */
export async function readFinished<Result>(
  call: TenantCall,
  { token, timeoutMs }: { readonly token: string | null; readonly timeoutMs: number },
  read: () => Promise<Result>,
): Promise<Result | undefined> {
  if (timeoutMs === 0 || token === null) return undefined;
  return unlessUnreadable(async () => ((await waitForWrites(call, token, timeoutMs)) ? read() : undefined));
}

/**
 * Returns what `read` tells of a committed write, for its answer. Returns undefined if `read` throws `unavailable`, or
 * `not_found`, as for what has expired or was erased since: an answer with either error would say that nothing was
 * stored, so that the caller sends it again.
 * @throws other errors of `read`
 */
export async function unlessUnreadable<Result>(read: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isEngineError(error, 'unavailable') || isEngineError(error, 'not_found')) return undefined;
    throw error;
  }
}

/**
 * Returns what a wait for background work returns, or throws its error, in a turn of the event loop that few share:
 * whatever ends the waits of thousands ends them together. A wait that is over in the present turn takes no other.
 */
export async function inTurnAfter<T>(wait: Promise<T>): Promise<T> {
  let hasWaited = false;
  const next = setImmediate(() => (hasWaited = true));
  try {
    return await wait;
  } finally {
    clearImmediate(next);
    const { tenantId, keyId } = currentShare();
    if (hasWaited) await waiters.wait(`${tenantId} ${keyId}`);
  }
}

/**
 * Makes a signal that aborts when the client's connection closes before the answer was written; if it has closed
 * already, the signal is aborted from the start. It does not abort after a complete answer: each abort makes an error
 * with a stack, which takes longer than routing the request.
 */
export function clientGone(response: Response): AbortSignal {
  const gone = new AbortController();
  const abortIfUnanswered = () => response.writableFinished || gone.abort();
  if (response.destroyed) abortIfUnanswered();
  else response.once('close', abortIfUnanswered);
  return gone.signal;
}
