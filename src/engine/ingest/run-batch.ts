import { serialiseError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import type { Metrics } from '../metrics.ts';
import {
  claimJobs,
  claimSuspect,
  failJob,
  finishJob,
  holdsLease,
  isolateJob,
  markFailed,
  releaseJob,
  type Claim,
} from '../store/jobs.ts';
import { setState } from '../store/dynamics.ts';
import { encodeMemories } from './encode.ts';
import { linkMemories } from './link.ts';
import { backoffMs, retryOf } from './retry.ts';
import type { StepContext } from './step-context.ts';

export interface BatchContext extends StepContext {
  readonly owner: string;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface BatchResult {
  /** Jobs that were claimed. */
  readonly claimed: number;
  /** The provider is down or asks for patience: claim nothing that needs it before so many milliseconds. */
  readonly providerPauseMs: number | null;
}

/**
 * Claims a batch of a tenant's jobs and takes it through its steps. A job that was in flight at a crash runs here by itself; the
 * caller runs one batch at a time in a process, so that it is truly alone.
 */
export async function runBatch(context: BatchContext, size: number, signal?: AbortSignal): Promise<BatchResult> {
  const claimed = claimBatch(context, size);
  if (claimed.encode.length + claimed.link.length === 0) return { claimed: 0, providerPauseMs: null };
  const encoded = await encodeBatch(context, claimed.encode, signal);
  await linkBatch(context, [...claimed.link, ...encoded.advanced]);
  return { claimed: claimed.encode.length + claimed.link.length, providerPauseMs: encoded.providerPauseMs };
}

/** Suspects first, alone; then what waits for its link, as it is nearly done; then new memories. */
function claimBatch({ open, owner, config, clock }: BatchContext, size: number): { encode: Claim[]; link: Claim[] } {
  const { store } = open();
  const options = { owner, leaseMs: config.OM_LEASE_MS, now: clock.now() };
  return store.write(() => {
    for (const step of ['link', 'encode'] as const) {
      const suspect = claimSuspect(store, { ...options, step });
      if (suspect !== undefined) return { encode: [], link: [], [step]: [suspect] };
    }
    const link = claimJobs(store, { ...options, step: 'link', limit: size });
    const encode = claimJobs(store, { ...options, step: 'encode', limit: Math.max(0, size - link.length) });
    return { encode, link };
  });
}

async function encodeBatch(
  context: BatchContext,
  claims: readonly Claim[],
  signal?: AbortSignal,
): Promise<{ advanced: readonly Claim[]; providerPauseMs: number | null }> {
  if (claims.length === 0) return { advanced: [], providerPauseMs: null };
  const observe = startTimer(context.metrics, 'encode');
  try {
    const { advanced, finished, failures } = await encodeMemories(context, claims, signal);
    observe(failures.length === 0 ? 'ok' : 'failed');
    context.metrics.finishedJobs.inc({ state: 'done' }, finished);
    const bySeq = new Map(claims.map((claim) => [claim.seq, claim]));
    return {
      advanced,
      providerPauseMs: settleFailures(
        context,
        failures.map(({ claimSeq, error }) => [bySeq.get(claimSeq) as Claim, error]),
      ),
    };
  } catch (error) {
    observe('failed');
    return {
      advanced: [],
      providerPauseMs: settleBatchFailure(context, claims, error),
    };
  }
}

async function linkBatch(context: BatchContext, claims: readonly Claim[]): Promise<void> {
  if (claims.length === 0) return;
  const observe = startTimer(context.metrics, 'link');
  try {
    // With vectors switched off since, there is nothing to link by.
    const finished = context.embedder === null ? finishUnlinked(context, claims) : await linkMemories(context, claims);
    observe('ok');
    context.metrics.finishedJobs.inc({ state: 'done' }, finished);
  } catch (error) {
    observe('failed');
    settleBatchFailure(context, claims, error);
  }
}

function finishUnlinked({ open, clock }: BatchContext, claims: readonly Claim[]): number {
  const { store } = open();
  return store.write(() => {
    const held = claims.filter((claim) => holdsLease(store, claim));
    for (const claim of held) {
      setState(store, claim.memory, 'ready');
      finishJob(store, claim, clock.now());
    }
    return held.length;
  });
}

/** A failure of a whole batch says nothing about any one of its jobs: each runs alone then, and only that counts. */
function settleBatchFailure(context: BatchContext, claims: readonly Claim[], error: unknown): number | null {
  const { kind } = retryOf(error, { attempts: 0, attemptsMax: context.config.OM_JOB_ATTEMPTS });
  if (claims.length === 1 || kind === 'wait')
    return settleFailures(
      context,
      claims.map((claim) => [claim, error]),
    );
  const { store } = context.open();
  store.write(() => {
    for (const claim of claims) isolateJob(store, claim, context.clock.now());
  });
  context.logger.warn({ jobs: claims.length, code: serialiseError(error).code }, 'batch_isolated');
  return null;
}

/**
 * Decides what each failure means: a provider that is down or busy costs a job nothing and holds up all that need it; any other
 * failure counts as an attempt.
 * @returns how long to leave the provider alone, if it failed
 */
function settleFailures(context: BatchContext, failures: readonly (readonly [Claim, unknown])[]): number | null {
  if (failures.length === 0) return null;
  const { store } = context.open();
  const now = context.clock.now();
  let pauseMs: number | null = null;
  const ended: { claim: Claim; state: string | undefined; code: string }[] = [];
  store.write(() => {
    for (const [claim, error] of failures) {
      const retry = retryOf(error, { attempts: claim.attempts, attemptsMax: context.config.OM_JOB_ATTEMPTS });
      if (retry.kind === 'wait') {
        pauseMs = Math.max(pauseMs ?? 0, retry.ms);
        releaseJob(store, claim, now, now);
        continue;
      }
      const { code, message } = serialiseError(error);
      const retryAt = retry.kind === 'retry' ? now + backoffMs(claim.attempts) : null;
      const state = failJob(store, claim, { code, message, retryAt }, now);
      if (state === 'dead') markFailed(store, claim.memory);
      ended.push({ claim, state, code });
    }
  });
  for (const { claim, state, code } of ended) {
    if (state === 'dead') context.metrics.finishedJobs.inc({ state: 'dead' });
    context.logger.warn({ job: claim.seq, step: claim.step, code, state: state ?? 'lost' }, 'job_failed');
  }
  return pauseMs;
}

function startTimer(metrics: Metrics, step: string): (outcome: 'ok' | 'failed') => void {
  const end = metrics.steps.startTimer({ step });
  return (outcome) => void end({ outcome });
}
