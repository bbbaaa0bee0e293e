import { isEngineError } from '../errors.ts';

/**
 * A decision about a failed step: `retry` counts an attempt and runs the job again after `backoffMs`, `give_up` does
 * not run it again.
 */
export type Retry =
  /** Probably not the job's fault: all jobs wait `ms`, and no attempt is counted. */
  { readonly kind: 'wait'; readonly ms: number } | { readonly kind: 'retry' } | { readonly kind: 'give_up' };

/** Pause after a failure that does not say how long to wait (ms). */
export const PROVIDER_PAUSE_MS = 1_000;

/**
 * Decides what to do about a step that failed with `error`.
 * @param attempts attempts that were counted before this failure
 * @param attemptsMax most attempts of a job, the first included
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

/** Decides what to do about a failure that counts as an attempt. Parameters are those of `retryOf`. */
export function retryCharged({ attempts, attemptsMax }: { attempts: number; attemptsMax: number }): Retry {
  return attempts + 1 < attemptsMax ? { kind: 'retry' } : { kind: 'give_up' };
}

/**
 * Returns the pause before the next attempt, in whole milliseconds: exponential (1 s for 0 attempts, 2 s for 1, 4 s for
 * 2 … at most a minute) with jitter, which takes off up to half.
 * @param attempts attempts that were counted before this failure
 * @param random returns a number from 0 up to, but not including, 1
 */
export function backoffMs(attempts: number, random: () => number = Math.random): number {
  return Math.round(Math.min(60_000, 1_000 * 2 ** attempts) * (0.5 + random() / 2));
}

/**
 * One worker's knowledge about the embedding provider: whether a failure is an outage, during which all jobs wait, or
 * is caused by a text that the provider cannot embed. It depends on no clock, and each worker starts without knowledge.
 * A ledger is named by the path of its tenant's file, a job by this path and its number, a model by name and
 * dimensions.
 */
export interface ProviderHealth {
  /** Notes that the provider returned vectors for any text. */
  noteAnswer(): void;
  /**
   * Notes that a batch of this ledger failed on the provider. Returns how many batches of the ledger failed in a row,
   * this one included.
   */
  noteFailedBatch(ledger: string): number;
  /** Notes that a job failed on the provider while it ran alone. */
  noteFailureAlone(job: string): void;
  /** Notes that a batch of this ledger succeeded. Pauses (`nextPauseMs`) start at half a second again. */
  noteWorked(ledger: string): void;
  /** True if this job failed alone earlier, and the provider has answered since and has failed on no job since then. */
  failsAmongAnswers(job: string): boolean;
  /** Notes whether the latest call of this model was answered; used where several models are at work. */
  noteModel(model: string, answers: boolean): void;
  /** True if the latest call of this model failed; false for a model of which nothing was noted. */
  isModelFailing(model: string): boolean;
  /**
   * Returns the time to leave the provider alone (ms): half a second, doubled with each call up to 30 s until a batch
   * succeeds, and `atLeast` if that is longer.
   */
  nextPauseMs(atLeast: number): number;
}

/** Batches of a ledger that fail in a row before its jobs run alone. */
export const MAX_FAILED_BATCHES = 3;
/** Most ledgers, jobs and models remembered, each. The oldest is forgotten, which costs it one more failure. */
const MAX_REMEMBERED = 4_096;

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
