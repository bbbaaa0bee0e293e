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

/**
 * Returns the pause before the next attempt, in whole milliseconds: exponential (1 s for 0 attempts, 2 s for 1, 4 s for
 * 2, at most a minute), then shortened at random by up to half.
 * @param attempts number of attempts that were counted before this failure
 * @param random returns a number from 0 up to, but not including, 1
 */
export function backoffMs(attempts: number, random: () => number = Math.random): number {
  return Math.round(Math.min(60_000, 1_000 * 2 ** attempts) * (0.5 + random() / 2));
}

/**
 * What one worker knows about a provider: whether a failure is an outage, during which all jobs wait, or is caused by a
 * text that the provider cannot embed. It depends on no clock, and each worker starts without knowledge. A ledger is
 * identified by the path of its tenant's file, a job by this path and its `jobNo`, a model by name and dimensions.
 */
export interface ProviderHealth {
  /** Records that the provider returned vectors for any text. */
  noteAnswer(): void;
  /**
   * Records that a batch of this ledger failed on the provider.
   * @returns how many batches of the ledger failed in a row, this one included
   */
  noteFailedBatch(ledger: string): number;
  /** Records that the provider's call for a job failed while no other job ran. */
  noteFailureAlone(job: string): void;
  /**
   * Records that a batch of this ledger succeeded, which ends the ledger's failures in a row. The pauses of the
   * provider (`nextPauseMs`), which all ledgers share, start at half a second again.
   */
  noteWorked(ledger: string): void;
  /**
   * Whether this job failed earlier while no other job ran, and the provider has answered since, with no failed batch
   * or lone job after that answer: then the job's text is probably at fault, and not the provider.
   */
  failsAmongAnswers(job: string): boolean;
  /** Records whether the latest call of this model was answered; used if several models are in use. */
  noteModel(model: string, answers: boolean): void;
  /** Whether the latest call of this model failed; false if no call of it was recorded. */
  isModelFailing(model: string): boolean;
  /**
   * Returns the time for which the provider should not be called (ms): half a second, doubled with each call up to 30 s
   * until a batch succeeds, or `atLeast` if that is longer.
   */
  nextPauseMs(atLeast: number): number;
}

/** Number of batches of a ledger that must fail in a row before its jobs are divided into smaller groups. */
export const MAX_FAILED_BATCHES = 3;
/**
 * Greatest number of ledgers, of jobs and of models that are remembered. If one of them is forgotten, its failures are
 * counted anew.
 */
const MAX_REMEMBERED = 4_096;

/** Creates a worker's knowledge of one provider. At first nothing is known: no failure is recorded, and no answer. */
export function createProviderHealth(): ProviderHealth {
  const failedBatches = new Map<string, number>();
  const failedAlone = new Map<string, true>();
  const failingModels = new Map<string, true>();
  let answering = false;
  let pauses = 0;
  return {
    noteAnswer() {
      answering = true;
    },
    noteFailedBatch(ledger) {
      answering = false;
      const failed = (failedBatches.get(ledger) ?? 0) + 1;
      remember(failedBatches, ledger, failed);
      return failed;
    },
    noteFailureAlone(job) {
      answering = false;
      remember(failedAlone, job, true);
    },
    noteWorked(ledger) {
      failedBatches.delete(ledger);
      pauses = 0;
    },
    noteModel(model, answers) {
      if (answers) failingModels.delete(model);
      else remember(failingModels, model, true);
    },
    isModelFailing: (model) => failingModels.has(model),
    failsAmongAnswers: (job) => answering && failedAlone.has(job),
    nextPauseMs: (atLeast) => Math.max(atLeast, Math.min(30_000, 500 * 2 ** pauses++)),
  };
}

function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MAX_REMEMBERED) map.delete(map.keys().next().value as string);
}
