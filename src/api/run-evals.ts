import { setTimeout as pause } from 'node:timers/promises';
import { type Engine, serialiseError } from '../engine/index.ts';

/** Pause between two looks at whether evaluation sets are due, ms. */
const LOOK_MS = 60_000;

/**
 * Runs the evaluation sets of all tenants whenever they are due, until the signal is aborted; does nothing without
 * `OM_EVAL_EVERY`. Processes may all do it, since the file of a tenant says who runs its sets. It never throws.
 */
export async function runEvalsByScheduleUntil(signal: AbortSignal, engine: Engine): Promise<void> {
  if (engine.config.OM_EVAL_EVERY === undefined) return;
  while (await passes(LOOK_MS, signal)) {
    for (const { id } of engine.control.listTenants()) {
      if (signal.aborted) return;
      try {
        const sets = await (await engine.tenant(id)).runDueEvals(signal);
        if (sets > 0) engine.logger.info({ sets }, 'evals_done');
      } catch (error) {
        if (!signal.aborted) engine.logger.error({ error: serialiseError(error) }, 'evals_failed');
      }
    }
  }
}

/** Waits, without keeping the process. @returns false if the signal was aborted */
export async function passes(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await pause(ms, undefined, { signal, ref: false });
    return true;
  } catch {
    return false;
  }
}
