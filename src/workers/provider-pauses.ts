import { setTimeout as pause } from 'node:timers/promises';
import { type ProviderHealth, createProviderHealth } from '../engine/for-workers.ts';
import type { QueuedStep } from '../engine/index.ts';

/**
 * Health and pauses of the providers, as one worker has seen them: of the embedding provider, and of the language model
 * that the step `reason` calls.
 */
export interface ProviderPauses {
  /**
   * Returns the health of the provider that a step calls: the language model for `reason`, else the embedding provider.
   */
  healthOf(step: QueuedStep): ProviderHealth;
  /**
   * Pauses the calls of the step's provider for `ms` from now, because the provider is down or asks callers to wait, or
   * because the disk is full. It replaces an earlier pause, even a longer one.
   */
  pause(step: QueuedStep, ms: number): void;
  /**
   * Waits until the pause of the step's provider is over, or the worker stops. Steps other than `encode` and `reason`
   * do not wait, since they call no provider.
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
