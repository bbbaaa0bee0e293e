import type { Response } from 'express';
import { localsOf } from './reply.ts';

/** Interval at which the callers of requests under way are checked again (ms): a revoked key ends within a second. */
const CHECK_MS = 400;

interface Watched {
  readonly response: Response;
  readonly isStillAdmitted: () => boolean;
}

const underWay = new Set<Watched>();
let timer: NodeJS.Timeout | undefined;

/**
 * Ends a reply that is under way once its caller would no longer be admitted, because its key was revoked or has
 * expired. `localsOf(response).onAdmissionLost` says how; by default the connection is cut. Requests that are answered
 * within an interval are never checked, so this costs them no more than an entry in a set.
 */
export function watchAdmission(response: Response, isStillAdmitted: () => boolean): void {
  if (response.destroyed) return;
  const watched = { response, isStillAdmitted };
  underWay.add(watched);
  response.once('close', () => underWay.delete(watched));
  timer ??= setInterval(checkAll, CHECK_MS).unref();
}

function checkAll(): void {
  if (underWay.size === 0) {
    clearInterval(timer);
    timer = undefined;
  }
  for (const watched of underWay) {
    const { response, isStillAdmitted } = watched;
    if (isStillAdmitted()) continue;
    underWay.delete(watched);
    const { onAdmissionLost = () => response.destroy() } = localsOf(response);
    onAdmissionLost();
  }
}
