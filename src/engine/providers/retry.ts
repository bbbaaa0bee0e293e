import { isEngineError } from '../errors.ts';

/**
 * Decision about a failed step. `wait`: the job is probably not at fault, so no attempt is counted, and it runs again
 * after a pause; `ms` is the pause that the failure asks for. `retry`: an attempt is counted, and the job runs again
 * after `backoffMs`. `give_up`: the job does not run again.
 */
export type Retry =
  { readonly kind: 'wait'; readonly ms: number } | { readonly kind: 'retry' } | { readonly kind: 'give_up' };

/** Pause after a failure that does not say how long to wait (ms). */
export const PROVIDER_PAUSE_MS = 1_000;

/**
 * Decides what to do about a step that failed with `error`. `rate_limited`, `unavailable` and `storage_full` wait;
 * `invalid` and `not_found` give up at once; any other error retries until the attempts are used up.
 * @param attempts number of attempts that were counted before this failure
 * @param attemptsMax greatest number of attempts of a job, the first one included
 */
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
  return retryCharged({ attempts, attemptsMax });
}

/**
 * Decides what to do about a failure that counts as an attempt: `give_up` if it was the last one, else `retry`.
 * Parameters are those of `retryOf`.
 */
export function retryCharged({ attempts, attemptsMax }: { attempts: number; attemptsMax: number }): Retry {
  return attempts + 1 < attemptsMax ? { kind: 'retry' } : { kind: 'give_up' };
}

/** Pause before the second attempt of a job (ms), which doubles with each further attempt. */
const FIRST_BACKOFF_MS = 1_000;
/** Longest pause between two attempts of a job (ms). */
const MAX_BACKOFF_MS = 60_000;

/**
 * Returns the pause before the next attempt, in whole milliseconds: exponential (1 s for 0 attempts, 2 s for 1, 4 s for
 * 2, at most a minute), then shortened at random by up to half.
 * @param attempts number of attempts that were counted before this failure
 * @param random returns a number from 0 up to, but not including, 1
 */
export function backoffMs(attempts: number, random: () => number = Math.random): number {
  return Math.round(Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** attempts) * (0.5 + random() / 2));
}
