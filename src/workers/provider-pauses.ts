import { setTimeout as pause } from 'node:timers/promises';
import { type ProviderHealth, createProviderHealth } from '../engine/for-workers.ts';
import type { QueuedStep } from '../engine/index.ts';

/**
 * What one worker remembers, in memory, of two providers: their health, and until when they are not called. One is the
 * language model, which the step `reason` calls. The other is the embedding provider, for all embedding models
 * together; all other steps count as steps of this provider. Other workers are not told.
 */
export interface ProviderPauses {
  /** Returns the health of a step's provider: of the language model for `reason`, else of the embedding provider. */
  healthOf(step: QueuedStep): ProviderHealth;
  /**
   * Lets `untilReady` wait for `ms` from now, for every step of the same provider: because the provider is down or asks
   * callers to wait, or because the disk is full. Work that has begun goes on. A later call counts alone, even if it
   * ends the pause earlier.
   */
  pause(step: QueuedStep, ms: number): void;
  /**
   * Resolves when the step's provider is not paused, at once if it is not paused now, or when the worker stops. Only
   * `encode` and `reason` wait: for `ingest` and `link`, which call no provider, it resolves at once.
   */
  untilReady(step: QueuedStep): Promise<void>;
}

/**
 * Creates the state for one worker, with no pauses.
 * @param signal aborts when the worker stops
 */
export function createProviderPauses(signal: AbortSignal): ProviderPauses {
  const embedding = { health: createProviderHealth(), pausedUntil: 0 };
  const languageModel = { health: createProviderHealth(), pausedUntil: 0 };
  const providerOf = (step: QueuedStep) => (step === 'reason' ? languageModel : embedding);
  return {
    healthOf: (step) => providerOf(step).health,
    pause(step, ms) {
      providerOf(step).pausedUntil = performance.now() + ms;
    },
    async untilReady(step) {
      if (step !== 'encode' && step !== 'reason') return;
      for (;;) {
        const ms = providerOf(step).pausedUntil - performance.now();
        if (ms <= 0 || signal.aborted) return;
        await pause(ms, undefined, { signal }).catch(() => {});
      }
    },
  };
}
