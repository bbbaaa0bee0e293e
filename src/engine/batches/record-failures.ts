import { isEngineError, serialiseError } from '../errors.ts';
import { MAX_FAILED_BATCHES } from '../providers/provider-health.ts';
import { backoffMs, PROVIDER_PAUSE_MS, retryCharged, retryOf } from '../providers/retry.ts';
import { failJob, isolateJobs, markFailed, releaseJob, type Claim, type HeldJob } from '../store/jobs.ts';
import { hasSuspect } from '../store/job-claims.ts';
import type { Batch } from './batch-context.ts';
import { answersProbe, hasFailedModel, mayOtherModelAnswer } from './watch-provider.ts';

/**
 * Longest time (ms) after which a job is due again that steps aside for other jobs, since a provider, or one of several
 * models, failed. A later time could not be distinguished from a clock that was set back.
 */
const MAX_DEFERRED_MS = 60_000;

/**
 * The claim of a job, and the error with which the job's step ended. `memoryNo` is null for a job that is about no
 * memory.
 */
export type Failed = readonly [claim: HeldJob & { readonly memoryNo: number | null }, error: unknown];

/**
 * Records the failures of the step `encode`. An outage of the provider and a text that makes the call for all texts
 * fail cannot be told apart at first: in both cases the jobs wait, and no attempt is counted. After 3 failed batches in
 * a row the failed jobs are divided into smaller groups of suspects, one batch at a time, so that a long outage does
 * not end in many small calls. A group that fails while nothing else runs is at fault if the provider answers other
 * texts. A group at fault is divided further; a job that is a group of its own is charged an attempt.
 * @returns how long to pause (ms); null if no pause is needed
 */
export async function recordEncodeFailures(
  batch: Batch,
  failures: readonly Failed[],
  { alone, signal }: { alone: boolean; signal: AbortSignal | undefined },
): Promise<number | null> {
  const onProvider = failures.filter(([, error]) => isEngineError(error, 'unavailable'));
  if (onProvider.length === 0 || signal?.aborted) return recordFailures(batch, failures);
  const { store } = batch.open();
  if (alone) {
    const jobs = onProvider.map(([{ jobNo }]) => `${store.path}:${jobNo}`);
    // If the text itself makes the provider fail, the probe may stay unanswered, too, but other texts are answered in
    // between.
    const atFault = jobs.every(batch.provider.failsAmongAnswers) || (await answersProbe(batch, signal));
    for (const job of jobs) batch.provider.noteFailureAlone(job);
    if (!atFault || jobs.length === 1) return recordFailures(batch, failures, atFault ? 'charge' : 'defer');
    isolate(batch, onProvider);
    return recordFailures(
      batch,
      failures.filter((failed) => !onProvider.includes(failed)),
    );
  }
  const failedInARow = batch.provider.noteFailedBatch(store.path);
  if (failedInARow < MAX_FAILED_BATCHES || hasSuspect(store, 'encode')) return recordFailures(batch, failures);
  isolate(batch, onProvider);
  return recordFailures(batch, failures);
}

/**
 * Records the failure of a whole batch, which does not show which job caused it. So the jobs become suspects, which run
 * in smaller batches, and only a job that fails alone is charged an attempt. After an error that asks to wait, all jobs
 * wait instead.
 * @returns how long to pause (ms); null if no pause is needed
 */
export function recordBatchFailure(batch: Batch, claims: readonly Claim[], error: unknown): number | null {
  const { kind } = retryOf(error, { attempts: 0, attemptsMax: batch.config.OM_JOB_ATTEMPTS });
  const failures = claims.map((claim) => [claim, error] as const);
  if (claims.length === 1 || kind === 'wait') return recordFailures(batch, failures);
  isolate(batch, failures);
  return null;
}

/** Gives jobs back to the ledger as suspects, so that they run again in smaller groups while nothing else runs. */
function isolate({ open, clock, logger }: Batch, failures: readonly Failed[]): void {
  const { store } = open();
  const claims = failures.map(([claim]) => claim);
  store.write(() => isolateJobs(store, claims, clock.now()));
  logger.warn({ jobs: failures.length, code: serialiseError(failures[0]?.[1]).code }, 'batch_isolated');
}

/**
 * Records each failure in the ledger. If a provider is down or limits its rate, or the disk is full, no attempt is
 * counted, and all jobs that need the provider or the disk pause. Any other failure counts as an attempt, and `invalid`
 * or `not_found` ends the job at once. A job that was already made a suspect, to run in a smaller group, is left
 * unchanged. If one of several models fails, its jobs wait and the jobs of the other models go on.
 * @param verdict about failures of the provider: `charge` counts them as attempts; `defer` makes the jobs due only
 *   after the pause, so that other jobs run first; if it is left out, the jobs are due at once and are claimed after
 *   the pause
 * @returns how long to pause (ms); null if no pause is needed
 */
export function recordFailures(batch: Batch, failures: readonly Failed[], verdict?: 'charge' | 'defer'): number | null {
  if (failures.length === 0) return null;
  const { store } = batch.open();
  const now = batch.clock.now();
  const judged = failures.map(([claim, error]) => {
    const budget = { attempts: claim.attempts, attemptsMax: batch.config.OM_JOB_ATTEMPTS };
    const charged = verdict === 'charge' && isEngineError(error, 'unavailable');
    return { claim, ...serialiseError(error), retry: charged ? retryCharged(budget) : retryOf(error, budget) };
  });
  const waiting = judged.flatMap(({ code, retry }) => (retry.kind === 'wait' ? [{ code, ms: retry.ms }] : []));
  const longest = waiting.toSorted((a, b) => b.ms - a.ms)[0];
  const failsAtModels = hasFailedModel(batch) && waiting.every(({ code }) => code !== 'storage_full');
  const holdsUp = !(failsAtModels && mayOtherModelAnswer(batch));
  const pauseMs = longest === undefined || !holdsUp ? null : batch.provider.nextPauseMs(longest.ms);
  const stepAsideMs = Math.min(MAX_DEFERRED_MS, (pauseMs ?? longest?.ms ?? 0) + PROVIDER_PAUSE_MS);
  const ended: { claim: HeldJob; state: string | undefined; code: string }[] = [];
  store.write(() => {
    for (const { claim, code, message, retry } of judged) {
      if (retry.kind === 'wait') {
        releaseJob(store, claim, verdict === 'defer' || failsAtModels ? now + stepAsideMs : now, now);
        continue;
      }
      const retryAt = retry.kind === 'retry' ? now + backoffMs(claim.attempts) : null;
      const state = failJob(store, claim, { code, message, retryAt }, now);
      if (state === 'dead' && claim.step !== 'reason') markFailed(store, claim.memoryNo);
      ended.push({ claim, state, code });
    }
  });
  for (const { claim, state, code } of ended) {
    if (state === 'dead') batch.metrics.finishedJobs.inc({ state: 'dead' });
    if (state !== undefined) batch.metrics.failedAttempts.inc({ step: claim.step, code });
    batch.logger.warn({ jobId: claim.id, step: claim.step, code, state: state ?? 'lost' }, 'job_failed');
  }
  if (longest !== undefined) {
    batch.metrics.workPauses.inc({ code: longest.code });
    if (holdsUp) batch.logger.warn({ code: longest.code, waitMs: pauseMs }, 'work_paused');
    else batch.logger.debug({ code: longest.code, waitMs: stepAsideMs, jobs: waiting.length }, 'jobs_deferred');
  }
  return pauseMs;
}
