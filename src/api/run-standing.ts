import { type Engine, isStillUnreachable, serialiseError } from '../engine/index.ts';
import { passes, tenantsOf } from './run-evals.ts';

/** Interval between two checks of the tenants that are known to have standing queries or webhooks (ms). */
const LOOK_MS = 200;
/**
 * Pause before the next check while there is work left (ms). A check may end without waiting for anything, if another
 * caller is comparing; only during this pause can the process then receive messages.
 */
const BUSY_MS = 1;
/**
 * Interval between two checks of all tenants (ms). They find tenants for which another process has stored the first
 * standing query or webhook.
 */
const SCAN_MS = 60_000;

/**
 * Answers standing queries and delivers webhooks when they are due, until the signal aborts. Without `OM_EVENTS` it
 * does nothing. Several processes may call it, since claims in the tenant's file keep them apart. It never rejects;
 * failures are logged.
 */
export async function tendStandingUntil(signal: AbortSignal, engine: Engine): Promise<void> {
  if (!engine.config.OM_EVENTS) return;
  let scannedAt = -Infinity;
  for (let isBusy = false; await passes(isBusy ? BUSY_MS : LOOK_MS, signal);) {
    if (performance.now() - scannedAt > SCAN_MS) {
      scannedAt = performance.now();
      for (const id of tenantsOf(engine, 'standing_failed')) engine.tended.add(id);
    }
    isBusy = false;
    for (const id of [...engine.tended]) {
      if (signal.aborted) return;
      // Taken out before the look: a standing query that is stored during it puts the tenant in again.
      engine.tended.delete(id);
      try {
        const tenant = await engine.tenant(id);
        const state = await tenant.tendStanding(signal);
        if (state !== 'absent') engine.tended.add(id);
        if (state === 'busy') isBusy = true;
      } catch (error) {
        // It is looked at again at the next scan.
        if (!signal.aborted && !isStillUnreachable(error))
          engine.logger.error({ error: serialiseError(error) }, 'standing_failed');
      }
    }
  }
}
