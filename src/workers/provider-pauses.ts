import { setTimeout as pause } from 'node:timers/promises';
import { type ProviderHealth, createProviderHealth } from '../engine/for-workers.ts';
import type { QueuedStep } from '../engine/index.ts';

/**
 * The state of the providers as one worker has seen it: of the embedding provider, and of the language model that the
 * step `reason` asks.
 */
export interface ProviderPauses {
  /** Returns the health of the step's provider: the language model for `reason`, else the embedding provider. */
  healthOf(step: QueuedStep): ProviderHealth;
  /**
   * Leaves the step's provider alone for `ms` from now, since it is down or asks for patience, or since the disk is
   * full. It replaces an earlier pause.
   */
  pause(step: QueuedStep, ms: number): void;
  /**
   * Waits until the step's provider may be asked again. Only `encode` and `reason` wait, since the other steps ask no
   * provider. It ends early once the worker stops.
   */
  untilReady(step: QueuedStep): Promise<void>;
}

/** Creates the state for one worker. @param signal aborts when the worker stops */
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
