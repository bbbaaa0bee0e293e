import type { Response } from 'express';
import { EngineError } from '../engine/index.ts';
import { localsOf } from './reply.ts';
import type { TenantCall } from './route.ts';

/**
 * Interval at which the keys of requests in progress are checked again (ms). A request with a revoked key ends within a
 * second.
 */
const CHECK_MS = 400;

interface Watched {
  readonly response: Response;
  readonly isStillAdmitted: () => boolean;
}

const underWay = new Set<Watched>();
let timer: NodeJS.Timeout | undefined;

/**
 * Ends a reply in progress once its caller would no longer be admitted, because its key was revoked or has expired. It
 * calls `localsOf(response).onAdmissionLost`, or closes the connection if that is undefined. Callers are checked every
 * 400 ms, so a request that is answered sooner costs only an entry in a set.
 */
export function watchAdmission(response: Response, isStillAdmitted: () => boolean): void {
  if (response.destroyed) return;
  const watched = { response, isStillAdmitted };
  underWay.add(watched);
  response.once('close', () => underWay.delete(watched));
  timer ??= setInterval(checkAll, CHECK_MS).unref();
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

function checkAll(): void {
  if (underWay.size === 0) {
    clearInterval(timer);
    timer = undefined;
  }
  for (const watched of underWay) {
    const { response, isStillAdmitted } = watched;
    if (mayGoOn(isStillAdmitted)) continue;
    underWay.delete(watched);
    const { onAdmissionLost = () => response.destroy() } = localsOf(response);
    onAdmissionLost();
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
