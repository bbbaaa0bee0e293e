import { settleDocumentsOf } from '../commands/settle-document.ts';
import { serialiseError } from '../errors.ts';
import type { QueuedStep } from '../jobs.ts';
import type { Metrics } from '../metrics.ts';
import { encodeMemories, type EncodeResult } from '../steps/encode.ts';
import { linkMemories } from '../steps/link.ts';
import { liveSources } from '../steps/step-context.ts';
import { setState } from '../store/dynamics.ts';
import { finishJob, releaseJob, type Claim } from '../store/jobs.ts';
import { bulkDueUntil, claimJobs, claimSuspects, claimThese } from '../store/job-claims.ts';
import { holdsLease } from '../store/job-leases.ts';
import { traced } from '../tracing.ts';
import { reembedMemories } from '../upkeep/reembed-memories.ts';
import { controlReembed, type TriesModels } from '../upkeep/reembed.ts';
import type { Batch, BatchContext, BatchResult } from './batch-context.ts';
import { runNamedDocuments } from './run-document.ts';
import { recordBatchFailure, recordEncodeFailures } from './record-failures.ts';
import { tracedBatch } from './traced-batch.ts';
import { tryModels } from './try-models.ts';
import { hasWorked, noteModels, watchProvider } from './watch-provider.ts';

/** The claims of a batch, by the step at which they begin. */
interface ClaimedBatch {
  readonly encode: readonly Claim[];
  readonly link: readonly Claim[];
  /** Whether the batch is one of suspects, at one of the steps, while nothing else runs. */
  readonly alone: boolean;
}

/**
 * Claims a batch of a tenant's jobs and runs their steps; failures are recorded in the ledger, not thrown. Suspects,
 * which are jobs that were active at a crash or in a batch that failed as a whole, form a batch of their own; only the
 * job that directs a change of the model may be in it, too. The caller lets nothing else run meanwhile, or leaves
 * suspects out with `suspects: false`.
 * @param size greatest number of jobs claimed; those at the step `link` are claimed before those at the step `encode`
 */
export async function runBatch(
  context: BatchContext,
  size: number,
  signal?: AbortSignal,
  { suspects = true }: { readonly suspects?: boolean } = {},
): Promise<BatchResult> {
  const batch = watchProvider(context);
  const { encode, link, alone } = claimBatch(batch, { size, suspects });
  const claimed = encode.length + link.length;
  if (claimed === 0) return { claimed, providerPauseMs: null };
  const step = encode.length > 0 ? 'encode' : 'link';
  const { encoded, linkPauseMs } = await tracedBatch(batch, step, [...encode, ...link], async () => {
    const encoded = await encodeBatch(batch, { claims: encode, alone, signal });
    return { encoded, linkPauseMs: await linkBatch(batch, [...link, ...encoded.advanced]) };
  });
  settleDocumentsOf(batch.open().store, [...encode, ...link], batch.clock.now());
  const providerPauseMs = longerPause(encoded.pauseMs, linkPauseMs);
  if (hasWorked(batch, providerPauseMs) && encode.length > 0) batch.provider.noteWorked(batch.open().store.path);
  return { claimed, providerPauseMs };
}

/** Jobs of one tenant's ledger that a queue named. */
export interface NamedJobs {
  /** Step at which the jobs are due. */
  readonly step: Exclude<QueuedStep, 'reason'>;
  /** `jobNo` of each job in the tenant's ledger. */
  readonly jobNos: readonly number[];
  /**
   * Whether the jobs are suspects, which were active at a crash or in a batch that failed as a whole: the caller runs
   * nothing else meanwhile.
   */
  readonly alone: boolean;
  /**
   * True links the encoded memories under the claim of `encode`, which saves three writes for each job compared with
   * the queue of the step `link`. False releases the jobs for the queue of `link`. Only the step `encode` uses this
   * field.
   */
  readonly linksAtOnce: boolean;
}

/**
 * Runs a step of the jobs that a queue named, if they are still due at this step in the ledger. With `linksAtOnce`, it
 * also links the memories that were encoded.
 */
export async function runNamed(context: BatchContext, jobs: NamedJobs, signal?: AbortSignal): Promise<BatchResult> {
  const batch = watchProvider(context);
  const { open, owner, config, clock } = batch;
  const { store } = open();
  const { step, jobNos, alone, linksAtOnce } = jobs;
  if (step === 'ingest') return { claimed: await runNamedDocuments(batch, jobs, signal), providerPauseMs: null };
  const claims = store.write(() =>
    claimThese(store, { step, jobNos, alone, owner, leaseMs: config.OM_LEASE_MS, now: clock.now() }),
  );
  if (claims.length === 0) return { claimed: 0, providerPauseMs: null };
  const settle = () => settleDocumentsOf(open().store, claims, clock.now());
  if (step === 'link') {
    const pauseMs = await tracedBatch(batch, step, claims, () => linkBatch(batch, claims));
    settle();
    return { claimed: claims.length, providerPauseMs: pauseMs };
  }
  const { encoded, linkPauseMs } = await tracedBatch(batch, step, claims, async () => {
    const encoded = await encodeBatch(batch, { claims, alone, signal });
    const linkPauseMs = linksAtOnce ? await linkBatch(batch, encoded.advanced) : handOn(batch, encoded.advanced);
    return { encoded, linkPauseMs };
  });
  settle();
  const providerPauseMs = longerPause(encoded.pauseMs, linkPauseMs);
  if (hasWorked(batch, providerPauseMs)) batch.provider.noteWorked(open().store.path);
  return { claimed: claims.length, providerPauseMs };
}

function longerPause(one: number | null, other: number | null): number | null {
  return one === null && other === null ? null : Math.max(one ?? 0, other ?? 0);
}

/**
 * Releases the claims on jobs whose next step has a queue of its own, so that the jobs are put into this queue. Returns
 * null: no pause is needed.
 */
function handOn({ open, clock }: Batch, claims: readonly Claim[]): null {
  if (claims.length === 0) return null;
  const { store } = open();
  const now = clock.now();
  store.write(() => {
    for (const claim of claims) releaseJob(store, claim, now, now);
  });
  return null;
}

/**
 * Claims suspects (see `runBatch`), to run alone, or else other due jobs. While links of memories are due, suspects of
 * the step `encode` wait, since these links need no provider.
 */
function claimBatch(
  { open, owner, config, clock }: Batch,
  { size, suspects }: { readonly size: number; readonly suspects: boolean },
): ClaimedBatch {
  const { store } = open();
  const options = { owner, leaseMs: config.OM_LEASE_MS, now: clock.now(), limit: size };
  const claimGroup = (step: 'encode' | 'link') => (suspects ? claimSuspects(store, { ...options, step }) : []);
  return store.write(() => {
    const linkGroup = claimGroup('link');
    if (linkGroup.length > 0) return { encode: [], link: linkGroup, alone: true };
    const link = claimJobs(store, { ...options, step: 'link' });
    // The job that controls a change of the model is always due: because of it, suspects would wait for ever.
    const group = link.some(({ kind }) => kind !== 'reembed') ? [] : claimGroup('encode');
    if (group.length > 0) return { encode: group, link, alone: true };
    const bulkUntil = bulkDueUntil(store, { embedsHere: config.embedsHere, now: options.now });
    const encode = claimJobs(store, { ...options, step: 'encode', bulkUntil, limit: Math.max(0, size - link.length) });
    return { encode, link, alone: false };
  });
}

async function encodeBatch(
  batch: Batch,
  { claims, alone, signal }: { claims: readonly Claim[]; alone: boolean; signal: AbortSignal | undefined },
): Promise<{ advanced: readonly Claim[]; pauseMs: number | null }> {
  if (claims.length === 0) return { advanced: [], pauseMs: null };
  const observe = startTimer(batch.metrics, 'encode');
  try {
    const size = { 'cairn.jobs': claims.length };
    const { advanced, finished, failures } = await traced(
      batch.tracing,
      'encode',
      { attributes: size },
      async (span) => {
        const result = await encodeClaims(batch, claims, signal);
        if (result.failures[0] !== undefined) span?.fail(serialiseError(result.failures[0].error).code);
        return result;
      },
    );
    observe(failures.length === 0 ? 'ok' : 'failed');
    batch.metrics.finishedJobs.inc({ state: 'done' }, finished);
    noteModels(batch);
    const byJobNo = new Map(claims.map((claim) => [claim.jobNo, claim]));
    const failed = failures.map(({ jobNo, error }) => [byJobNo.get(jobNo) as Claim, error] as const);
    return { advanced, pauseMs: await recordEncodeFailures(batch, failed, { alone, signal }) };
  } catch (error) {
    observe('failed');
    return { advanced: [], pauseMs: recordBatchFailure(batch, claims, error) };
  }
}

async function encodeClaims(
  batch: Batch,
  claims: readonly Claim[],
  signal: AbortSignal | undefined,
): Promise<EncodeResult> {
  const isReembed = ({ kind }: Claim) => kind === 'reembed';
  const [encoded, notReembedded] = await Promise.all([
    encodeMemories(
      batch,
      claims.filter((claim) => !isReembed(claim)),
      signal,
    ),
    reembedMemories(batch, claims.filter(isReembed), signal),
  ]);
  return { ...encoded, failures: [...encoded.failures, ...notReembedded] };
}

/**
 * Links memories, and continues a change of the model.
 * @returns how long to pause (ms), for example because the disk is full; null if no pause is needed
 */
async function linkBatch(batch: Batch, claims: readonly Claim[]): Promise<number | null> {
  const links = claims.filter(({ kind }) => kind !== 'reembed');
  const controllers = claims.filter(({ kind }) => kind === 'reembed');
  const linkPauseMs = await timed(batch, links, 'link', async () => {
    // Memories cannot be compared if vectors were switched off meanwhile, or while no live model can be called.
    const finished = liveSources(batch).size === 0 ? finishUnlinked(batch, links) : await linkMemories(batch, links);
    batch.metrics.finishedJobs.inc({ state: 'done' }, finished);
  });
  const reembedPauseMs = await timed(batch, controllers, 'reembed', async () => {
    const tries: TriesModels = (models, begun) => tryModels(batch, models, begun);
    for (const controller of controllers) await controlReembed(batch, controller, tries);
  });
  return longerPause(linkPauseMs, reembedPauseMs);
}

/**
 * Does the work of a step as a span, and measures its time. An error counts as the failure of the whole batch.
 * @returns how long to pause (ms); null if no pause is needed or there are no claims
 */
async function timed(
  batch: Batch,
  claims: readonly Claim[],
  step: string,
  work: () => Promise<void>,
): Promise<number | null> {
  if (claims.length === 0) return null;
  const observe = startTimer(batch.metrics, step);
  try {
    await traced(batch.tracing, step, { attributes: { 'cairn.jobs': claims.length } }, work);
    observe('ok');
    return null;
  } catch (error) {
    observe('failed');
    return recordBatchFailure(batch, claims, error);
  }
}

/**
 * Ends jobs without linking their memories, and marks these memories as ready.
 * @returns how many jobs still held their lease
 */
function finishUnlinked({ open, clock }: Batch, claims: readonly Claim[]): number {
  const { store } = open();
  return store.write(() => {
    const held = claims.filter((claim) => holdsLease(store, claim));
    for (const claim of held) {
      setState(store, claim.memoryNo, 'ready');
      finishJob(store, claim, clock.now());
    }
    return held.length;
  });
}

function startTimer(metrics: Metrics, step: string): (outcome: 'ok' | 'failed') => void {
  const end = metrics.steps.startTimer({ step });
  return (outcome) => void end({ outcome });
}
