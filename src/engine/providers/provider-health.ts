/**
 * What one worker knows about a provider: whether a failure is an outage, during which all jobs wait, or is caused by a
 * text that the provider cannot embed. It depends on no clock, and each worker starts without knowledge. A ledger is
 * identified by the path of its tenant's file, a job by this path and its `jobNo`, a model by name and dimensions.
 */
export interface ProviderHealth {
  /**
   * Records that the provider returned vectors for any text; at the step `reason`, that the language model answered.
   * @param job the job whose own question was answered: an earlier failure of it (`noteFailureAlone`) is forgotten
   */
  noteAnswer(job?: string): void;
  /**
   * Records that a batch of this ledger failed on the provider.
   * @returns how many batches of the ledger failed in a row, this one included
   */
  noteFailedBatch(ledger: string): number;
  /**
   * Records that a job failed on the provider while nothing ran beside its group of suspects; at the step `reason`,
   * that the job's own question to the language model failed.
   */
  noteFailureAlone(job: string): void;
  /**
   * Records that a batch of this ledger succeeded, which ends the ledger's failures in a row. The pauses of the
   * provider (`nextPauseMs`), which all ledgers share, start at half a second again.
   */
  noteWorked(ledger: string): void;
  /**
   * Whether `noteFailureAlone` recorded this job earlier, and the provider has answered since, though not this job,
   * with no failed batch and no such failure of any job after that answer: then the job's text is probably at fault,
   * and not the provider.
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

/** First pause during which a provider that fails is not called (ms), which doubles with each further pause. */
const FIRST_PAUSE_MS = 500;
/** Longest pause of a provider, unless a failure asks for a longer one (ms). */
const MAX_PAUSE_MS = 30_000;

/** Creates a worker's knowledge of one provider. At first nothing is known: no failure is recorded, and no answer. */
export function createProviderHealth(): ProviderHealth {
  const failedBatches = new Map<string, number>();
  const failedAlone = new Map<string, true>();
  const failingModels = new Map<string, true>();
  let answering = false;
  let pauses = 0;
  return {
    noteAnswer(job) {
      answering = true;
      if (job !== undefined) failedAlone.delete(job);
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
    nextPauseMs: (atLeast) => Math.max(atLeast, Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** pauses++)),
  };
}

function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MAX_REMEMBERED) map.delete(map.keys().next().value as string);
}
