import { type Engine, serialiseError } from '../engine/index.ts';
import { passes } from './run-evals.ts';

/** Pause between two looks at the tenants that have standing queries or webhooks, ms. */
const LOOK_MS = 200;
/** Time between two looks at all tenants, ms: another process may have stored the first webhook of one. */
const SCAN_MS = 60_000;

/**
 * Does what standing queries and webhooks owe, until the signal is aborted. Processes may all do it, since the file of
 * a tenant says who has claimed what. It never throws.
 */
export async function tendStandingUntil(signal: AbortSignal, engine: Engine): Promise<void> {
  if (!engine.config.OM_EVENTS) return;
  let scannedAt = -Infinity;
  for (let isBusy = false; isBusy || (await passes(LOOK_MS, signal));) {
    if (performance.now() - scannedAt > SCAN_MS) {
      scannedAt = performance.now();
      for (const { id } of engine.control.listTenants()) engine.tended.add(id);
    }
    isBusy = false;
    for (const id of engine.tended) {
      if (signal.aborted) return;
      try {
        const tenant = await engine.tenant(id);
        const state = await tenant.tendStanding(signal);
        if (state === 'absent') engine.tended.delete(id);
        if (state === 'busy') isBusy = true;
      } catch (error) {
        // It is looked at again at the next scan.
        engine.tended.delete(id);
        if (!signal.aborted) engine.logger.error({ error: serialiseError(error) }, 'standing_failed');
      }
    }
  }
}
