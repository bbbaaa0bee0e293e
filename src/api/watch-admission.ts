import type { Response } from 'express';
import { EngineError, type Tenant } from '../engine/index.ts';
import { localsOf } from './reply.ts';
import type { TenantCall } from './route.ts';

/**
 * Interval at which the keys of requests in progress are checked again (ms). A request with a revoked key ends within a
 * second.
 */
const CHECK_MS = 400;

/**
 * Number of callers that are asked about, and of replies that are ended, in one turn of the event loop. To ask about a
 * session reads the control database.
 */
const PER_TURN = 32;

interface Watched {
  readonly response: Response;
  readonly isStillAdmitted: () => boolean;
  /**
   * Value that all requests of one caller have in common (`AccessControl.callerOf`), so that one check serves all of
   * them.
   */
  readonly caller: unknown;
  /** Index in `underWay`; undefined once the reply has ended. */
  place: number | undefined;
}

/**
 * The requests in progress, in any order. A `Set` would do the same, but V8 keeps each table that a set has outgrown
 * alive with what was in it, for as long as an earlier table is not collected: half of all requests would move to the
 * old generation.
 */
const underWay: Watched[] = [];
let timer: NodeJS.Timeout | undefined;
let isChecking = false;

/**
 * Ends a reply in progress once its caller would no longer be admitted, because its key was revoked or has expired, or
 * its session has ended. It calls `localsOf(response).onAdmissionLost`, or closes the connection if that is undefined.
 * Callers are checked every 400 ms, each once for all of its requests, so a request that is answered sooner costs only
 * an entry in a list.
 * @param caller a value by which requests of one caller are recognised, so that `isStillAdmitted` is called for one of
 *   them and its result holds for all
 */
export function watchAdmission(
  response: Response,
  isStillAdmitted: () => boolean,
  caller: unknown = isStillAdmitted,
): void {
  if (response.destroyed) return;
  const watched: Watched = { response, isStillAdmitted, caller, place: underWay.length };
  underWay.push(watched);
  response.once('close', () => remove(watched));
  timer ??= setInterval(() => void checkAll(), CHECK_MS).unref();
}

/**
 * Leaves it to the handler of a request to end the reply once its caller is no longer admitted, so that the reply can
 * still say what was done. The handler calls the returned function before each part of its work.
 * @returns a function that throws EngineError `unauthenticated` once the caller's key or session has ended
 */
export function admissionCheck({ api, principal, response }: TenantCall): () => void {
  let isAdmitted = true;
  localsOf(response).onAdmissionLost = () => void (isAdmitted = false);
  return () => {
    if (!isAdmitted || !api.engine.control.isHolderValid(principal))
      throw new EngineError('unauthenticated', 'this key or session has ended or was revoked');
  };
}

/**
 * Returns the tenant of a request whose work takes many commits, such as a delete by filter. Once the caller's key or
 * session has ended, no further commit is made, and the method fails with EngineError `unauthenticated`. What was
 * written by then stays.
 */
export function tenantWhileAdmitted(call: TenantCall): Tenant {
  return call.tenant.whileAdmitted(admissionCheck(call));
}

/** Checks all callers, in as many turns of the event loop as are needed, unless the last check still goes on. */
async function checkAll(): Promise<void> {
  if (isChecking) return;
  if (underWay.length === 0) {
    clearInterval(timer);
    timer = undefined;
  }
  isChecking = true;
  try {
    const answers = new Map<unknown, boolean>();
    let done = 0;
    for (const watched of [...underWay]) {
      if (watched.place === undefined) continue;
      const { caller, isStillAdmitted } = watched;
      const isAsked = !answers.has(caller);
      if (isAsked) answers.set(caller, mayGoOn(isStillAdmitted));
      const hasEnded = answers.get(caller) === false;
      if (hasEnded) end(watched);
      if ((isAsked || hasEnded) && (done += 1) % PER_TURN === 0) await new Promise(setImmediate);
    }
  } finally {
    isChecking = false;
  }
}

/** Removes a request from those in progress, if it is one of them; the last one of the list takes its place. */
function remove(watched: Watched): void {
  const { place } = watched;
  if (place === undefined) return;
  watched.place = undefined;
  const last = underWay.pop()!;
  if (last === watched) return;
  underWay[place] = last;
  last.place = place;
}

/** Ends a request whose caller is no longer admitted. It does not throw, since a timer calls it. */
function end(watched: Watched): void {
  const { response } = watched;
  remove(watched);
  const { onAdmissionLost = () => response.destroy() } = localsOf(response);
  try {
    onAdmissionLost();
  } catch {
    response.destroy();
  }
}

/**
 * Returns whether the caller is still admitted. If the keys cannot be read now, it returns true and the next check
 * decides; an error must not be thrown here, since a timer calls this and nobody would catch it.
 */
function mayGoOn(isStillAdmitted: () => boolean): boolean {
  try {
    return isStillAdmitted();
  } catch {
    return true;
  }
}
