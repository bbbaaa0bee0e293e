import { setTimeout as pause } from 'node:timers/promises';
import { type ProviderHealth, createProviderHealth } from '../engine/for-workers.ts';
import type { QueuedStep } from '../engine/index.ts';

/**
 * What one worker knows of the providers: the embedding provider, and the language model that the step `reason` asks.
 */
export interface ProviderPauses {
  healthOf(step: QueuedStep): ProviderHealth;
  /** Leaves the step's provider alone for `ms`, since it is down or asks for patience, or since the disk is full. */
  pause(step: QueuedStep, ms: number): void;
  /**
   * Waits until the step's provider may be asked again. Steps that ask no provider never wait. Ends early once the
   * worker stops.
   */
  untilReady(step: QueuedStep): Promise<void>;
}

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
