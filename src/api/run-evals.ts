import { setTimeout as pause } from 'node:timers/promises';
import { type Engine, serialiseError } from '../engine/index.ts';

/** Interval between two checks for evaluation sets that are due (ms). */
const LOOK_MS = 60_000;

/**
 * Runs the evaluation sets of all tenants when they are due, checking once a minute, until the signal aborts. Without
 * `OM_EVAL_EVERY` it does nothing. Several processes may call it, since a claim in the tenant's file decides which one
 * runs its sets. It never rejects; failures are logged.
 */
export async function runEvalsByScheduleUntil(signal: AbortSignal, engine: Engine): Promise<void> {
  if (engine.config.OM_EVAL_EVERY === undefined) return;
  while (await passes(LOOK_MS, signal)) {
    try {
      for await (const id of engine.looks.find('evals')) {
        if (signal.aborted) return;
        await runDue(engine, id, signal);
      }
    } catch (error) {
      // The control database cannot be read just now: the next check comes.
      if (!signal.aborted) engine.logger.error({ error: serialiseError(error) }, 'evals_failed');
    }
  }
}

async function runDue(engine: Engine, id: string, signal: AbortSignal): Promise<void> {
  try {
    const sets = await (await engine.tenant(id)).runDueEvals(signal);
    if (sets > 0) engine.logger.info({ sets }, 'evals_done');
  } catch (error) {
    if (!signal.aborted) engine.logger.error({ error: serialiseError(error) }, 'evals_failed');
  }
}

/**
 * Waits for `ms`, without keeping the process alive.
 * @returns true if the time has passed; false if the signal aborted
 */
export async function passes(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await pause(ms, undefined, { signal, ref: false });
    return true;
  } catch {
    return false;
  }
}
