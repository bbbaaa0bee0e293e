import { isEngineError } from '../errors.ts';

/** What to do about a failed step. */
export type Retry =
  /** Not the job's fault, as far as one can tell: all wait, nothing is counted. */
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
  return retryCharged({ attempts, attemptsMax });
}

/** For a failure that counts as an attempt. */
export function retryCharged({ attempts, attemptsMax }: { attempts: number; attemptsMax: number }): Retry {
  return attempts + 1 < attemptsMax ? { kind: 'retry' } : { kind: 'give_up' };
}

/** Exponential with jitter: 1 s, 2 s, 4 s … at most a minute, each between half and all of it; whole milliseconds. */
export function backoffMs(attempts: number, random: () => number = Math.random): number {
  return Math.round(Math.min(60_000, 1_000 * 2 ** attempts) * (0.5 + random() / 2));
}

/**
 * What one worker knows of the embedding provider: whether a failure is an outage, which all wait for, or the doing of a text that
 * it cannot embed. No clock takes part, and each worker begins anew.
 */
export interface ProviderHealth {
  /** The provider returned vectors for somebody's text. */
  noteAnswer(): void;
  /** A batch of this ledger failed on the provider. @returns how many did so in a row */
  noteFailedBatch(ledger: string): number;
  noteFailureAlone(job: string): void;
  /** A batch went through. */
  noteWorked(ledger: string): void;
  /** True if this job failed alone before, and the last that the provider did since was to answer another. */
  failsAmongAnswers(job: string): boolean;
  /** Of several models at work: this one answered last, or failed. */
  noteModel(model: string, answers: boolean): void;
  /** True if it failed last. */
  isModelFailing(model: string): boolean;
  /** How long to leave the provider alone: at least so long, and doubled from half a second to 30 s until a batch goes through. */
  nextPauseMs(atLeast: number): number;
}

/** Batches of a ledger that fail in a row before their jobs run alone. */
export const FAILED_BATCHES_MOST = 3;
/** Ledgers and jobs remembered, each; the oldest is forgotten, which costs it one more failure. */
const REMEMBERED_MOST = 4_096;

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
  if (map.size > REMEMBERED_MOST) map.delete(map.keys().next().value as string);
}
