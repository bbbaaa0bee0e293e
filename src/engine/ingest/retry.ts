import { isEngineError } from '../errors.ts';

/** What to do about a failed step. */
export type Retry =
  /** The provider's fault, not the job's: all who need it wait, nothing is counted. */
  { readonly kind: 'wait'; readonly ms: number } | { readonly kind: 'retry' } | { readonly kind: 'give_up' };

export const PROVIDER_PAUSE_MS = 1_000;

export function retryOf(error: unknown, { attempts, attemptsMax }: { attempts: number; attemptsMax: number }): Retry {
  if (
    isEngineError(error, 'rate_limited') ||
    isEngineError(error, 'unavailable') ||
    isEngineError(error, 'storage_full')
  ) {
    return { kind: 'wait', ms: error.retryAfterMs ?? PROVIDER_PAUSE_MS };
  }
  // A text that the provider refuses will be refused again, and a memory that is gone stays gone.
  if (isEngineError(error, 'invalid') || isEngineError(error, 'not_found')) return { kind: 'give_up' };
  return attempts + 1 < attemptsMax ? { kind: 'retry' } : { kind: 'give_up' };
}

/** Exponential with jitter: 1 s, 2 s, 4 s … at most a minute, each between half and all of it; whole milliseconds. */
export function backoffMs(attempts: number, random: () => number = Math.random): number {
  return Math.round(Math.min(60_000, 1_000 * 2 ** attempts) * (0.5 + random() / 2));
}
