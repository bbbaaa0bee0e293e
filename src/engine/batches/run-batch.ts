import { settleDocumentsOf } from '../commands/settle-document.ts';
import { EngineError, isEngineError, serialiseError } from '../errors.ts';
import type { QueuedStep } from '../jobs.ts';
import type { Metrics } from '../metrics.ts';
import { PROBE_TEXT } from '../providers/call-provider.ts';
import type { EmbeddingGatherer } from '../providers/embedding-gatherer.ts';
import {
  backoffMs,
  createProviderHealth,
  FAILED_BATCHES_MOST,
  PROVIDER_PAUSE_MS,
  retryCharged,
  retryOf,
  type ProviderHealth,
} from '../providers/retry.ts';
import { encodeMemories, type EncodeResult } from '../steps/encode.ts';
import { linkMemories } from '../steps/link.ts';
import { liveSources, sourceOfModel } from '../steps/step-context.ts';
import { setState } from '../store/dynamics.ts';
import {
  bulkDueUntil,
  claimJobs,
  claimSuspects,
  claimThese,
  failJob,
  finishJob,
  hasSuspect,
  holdsLease,
  isolateJobs,
  markFailed,
  releaseJob,
  type Claim,
  type HeldJob,
} from '../store/jobs.ts';
import { distinctModels } from '../store/live-model.ts';
import type { SpaceIdentity } from '../tenant-file/open-tenant.ts';
import { traced } from '../tracing.ts';
import { reembedMemories } from '../upkeep/reembed-memories.ts';
import { directReembed } from '../upkeep/reembed.ts';
import type { BatchContext } from './batch-context.ts';
import { runNamedDocuments } from './run-document.ts';
import { tracedBatch } from './traced-batch.ts';

/** Jobs that wait for one of several models ask again after so long at most: a time further ahead could not be told from a clock that was set back. */
const DEFERRED_MOST_MS = 60_000;

export interface BatchResult {
  /** Jobs that were claimed. */
  readonly claimed: number;
  /** The provider is down or asks for patience, or the disk is full: claim nothing before so many milliseconds. */
  readonly providerPauseMs: number | null;
}

export type Batch = BatchContext & {
  readonly provider: ProviderHealth;
  /** What several models said in this batch; left out where one embeds all. */
  readonly models?: ModelsAsked | undefined;
};

/** The models that were asked in a batch, by name and dimensions. */
interface ModelsAsked {
  readonly answered: Set<string>;
  readonly failed: Set<string>;
}

interface ClaimedBatch {
  readonly encode: readonly Claim[];
  readonly link: readonly Claim[];
  /** They are suspects: whatever happens now is their own doing. */
  readonly alone: boolean;
}

/**
 * Claims a batch of a tenant's jobs and takes it through its steps. Jobs that were in flight at a crash, or in a batch that failed
 * as a whole, are a batch of their own; the caller lets nothing else run meanwhile, or passes them over (`suspects: false`).
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

/** Jobs that a queue named. */
export interface NamedJobs {
  readonly step: Exclude<QueuedStep, 'reason'>;
  readonly seqs: readonly number[];
  /** True for suspects; the caller runs nothing else meanwhile. */
  readonly alone: boolean;
  /** Whether the caller links what it has encoded, which saves three writes a job over handing it back for the link's own queue. */
  readonly linksAtOnce: boolean;
}

/** Takes the jobs that a queue named through their step, and on to the link where the caller does that, as far as the ledger owes it. */
export async function runNamed(context: BatchContext, jobs: NamedJobs, signal?: AbortSignal): Promise<BatchResult> {
  const batch = watchProvider(context);
  const { open, owner, config, clock } = batch;
  const { store } = open();
  const { step, seqs, alone, linksAtOnce } = jobs;
  if (step === 'ingest') return { claimed: await runNamedDocuments(batch, jobs, signal), providerPauseMs: null };
  const claims = store.write(() =>
    claimThese(store, { step, seqs, alone, owner, leaseMs: config.OM_LEASE_MS, now: clock.now() }),
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

function hasWorked({ models }: Batch, pauseMs: number | null): boolean {
  return pauseMs === null && (models === undefined || models.failed.size === 0);
}

/** Lets go of jobs whose next step is another queue's. */
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
 * Only what the provider itself returned proves that it works: texts that the cache knows never reach the gatherer. Of several models one
 * may answer while another is down, so that each is watched by itself, and only a probe tells whose fault a failure is.
 */
function watchProvider(context: BatchContext): Batch {
  const { gatherer, embedder, sourceOf, provider = createProviderHealth() } = context;
  if (gatherer === null || embedder === null) return { ...context, provider };
  if (context.config.OM_EMBED_MODE === 'simple') {
    return { ...context, provider, gatherer: watch(gatherer, { answered: () => provider.noteAnswer() }) };
  }
  const { configuredModels } = context.open();
  const configured = new Set(configuredModels === null ? [] : distinctModels(configuredModels).map(nameOf));
  const models = { answered: new Set<string>(), failed: new Set<string>() };
  const watchModel = (of: EmbeddingGatherer, model: SpaceIdentity) =>
    watch(of, {
      answered: () => void models.answered.add(nameOf(model)),
      failed: () => void models.failed.add(nameOf(model)),
    });
  return {
    ...{ ...context, provider, models },
    gatherer: watchModel(gatherer, embedder),
    sourceOf(model) {
      const source = sourceOf?.(model) ?? null;
      // A model that is live only until others are may be gone for good, and nobody waits for it.
      if (source === null || !configured.has(nameOf(model))) return source;
      return { ...source, gatherer: watchModel(source.gatherer, model) };
    },
  };
}

function watch(
  gatherer: EmbeddingGatherer,
  { answered, failed }: { readonly answered: () => void; readonly failed?: () => void },
): EmbeddingGatherer {
  return {
    ...gatherer,
    async embedAll(texts, purpose, signal) {
      try {
        const vectors = await gatherer.embedAll(texts, purpose, signal);
        if (vectors.length > 0) answered();
        return vectors;
      } catch (error) {
        if (isEngineError(error, 'unavailable') || isEngineError(error, 'rate_limited')) failed?.();
        throw error;
      }
    },
  };
}

/** As settings name it. */
function nameOf({ model, dimensions }: SpaceIdentity): string {
  return `${model}@${dimensions}`;
}

/** Suspects first, alone, but not before links that are owed: those need no provider. Then what is new. */
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
    // The director of a change of the model is due all the time: it would keep suspects waiting for ever.
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
    const bySeq = new Map(claims.map((claim) => [claim.seq, claim]));
    const failed = failures.map(({ claimSeq, error }) => [bySeq.get(claimSeq) as Claim, error] as const);
    return { advanced, pauseMs: await settleEncodeFailures(batch, failed, { alone, signal }) };
  } catch (error) {
    observe('failed');
    return { advanced: [], pauseMs: settleBatchFailure(batch, claims, error) };
  }
}

async function encodeClaims(
  batch: Batch,
  claims: readonly Claim[],
  signal: AbortSignal | undefined,
): Promise<EncodeResult> {
  const isAgain = ({ kind }: Claim) => kind === 'reembed';
  const [encoded, notReembedded] = await Promise.all([
    encodeMemories(
      batch,
      claims.filter((claim) => !isAgain(claim)),
      signal,
    ),
    reembedMemories(batch, claims.filter(isAgain), signal),
  ]);
  return { ...encoded, failures: [...encoded.failures, ...notReembedded] };
}

/** @returns how long to pause, as the disk may be full */
async function linkBatch(batch: Batch, claims: readonly Claim[]): Promise<number | null> {
  const links = claims.filter(({ kind }) => kind !== 'reembed');
  const directors = claims.filter(({ kind }) => kind === 'reembed');
  const linkPauseMs = await timed(batch, links, 'link', async () => {
    // With vectors switched off since, or while the live model cannot be asked, there is nothing to link by.
    const finished = liveSources(batch).size === 0 ? finishUnlinked(batch, links) : await linkMemories(batch, links);
    batch.metrics.finishedJobs.inc({ state: 'done' }, finished);
  });
  const reembedPauseMs = await timed(batch, directors, 'reembed', async () => {
    for (const director of directors) await directReembed(batch, director);
  });
  return longerPause(linkPauseMs, reembedPauseMs);
}

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
    return settleBatchFailure(batch, claims, error);
  }
}

function finishUnlinked({ open, clock }: Batch, claims: readonly Claim[]): number {
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

/** The memory of a job, if it is about one. */
export type Failed = readonly [claim: HeldJob & { readonly memory: number | null }, error: unknown];

/** One that answered at all is not down: what it failed for is looked into by the batch. */
function noteModels({ models, provider }: Batch): void {
  for (const model of models?.failed ?? []) provider.noteModel(model, false);
  for (const model of models?.answered ?? []) provider.noteModel(model, true);
}

/**
 * An outage and a text that spoils the reply for all look alike at first: both wait and count nothing. Batches that keep failing are
 * taken apart, at most one at a time, so that a long outage does not end in many small calls. A group that fails with nothing else inside
 * is to blame if the provider answers others: it is taken apart further, and a job that is a group of its own is charged like for any
 * other failure, and nobody waits for it.
 */
async function settleEncodeFailures(
  batch: Batch,
  failures: readonly Failed[],
  { alone, signal }: { alone: boolean; signal: AbortSignal | undefined },
): Promise<number | null> {
  const onProvider = failures.filter(([, error]) => isEngineError(error, 'unavailable'));
  if (onProvider.length === 0 || signal?.aborted) return settleFailures(batch, failures);
  const { store } = batch.open();
  if (alone) {
    const jobs = onProvider.map(([{ seq }]) => `${store.path}:${seq}`);
    // A text that takes the provider down with it leaves no probe answered, but shows by what happens around it.
    const atFault = jobs.every(batch.provider.failsAmongAnswers) || (await answersProbe(batch, signal));
    for (const job of jobs) batch.provider.noteFailureAlone(job);
    if (!atFault || jobs.length === 1) return settleFailures(batch, failures, atFault ? 'charge' : 'defer');
    isolate(batch, onProvider);
    return settleFailures(
      batch,
      failures.filter((failed) => !onProvider.includes(failed)),
    );
  }
  const failedInARow = batch.provider.noteFailedBatch(store.path);
  if (failedInARow < FAILED_BATCHES_MOST || hasSuspect(store, 'encode')) return settleFailures(batch, failures);
  isolate(batch, onProvider);
  return settleFailures(batch, failures);
}

/** Each model that failed has to. */
async function answersProbe(batch: Batch, signal: AbortSignal | undefined): Promise<boolean> {
  const { configuredModels } = batch.open();
  if (configuredModels === null) return false;
  const asked = distinctModels(configuredModels).filter((model) => batch.models?.failed.has(nameOf(model)) ?? true);
  const probes = asked.map(async (model) => {
    const source = sourceOfModel(batch, model);
    if (source === null) throw new EngineError('unavailable', `no embedder for ${model.model}`);
    await source.gatherer.embed(PROBE_TEXT, 'document', signal);
  });
  return Promise.all(probes).then(
    () => true,
    () => false,
  );
}

/** A failure of a whole batch says nothing about any one of its jobs: it is taken apart, and only what fails alone counts. */
function settleBatchFailure(batch: Batch, claims: readonly Claim[], error: unknown): number | null {
  const { kind } = retryOf(error, { attempts: 0, attemptsMax: batch.config.OM_JOB_ATTEMPTS });
  const failures = claims.map((claim) => [claim, error] as const);
  if (claims.length === 1 || kind === 'wait') return settleFailures(batch, failures);
  isolate(batch, failures);
  return null;
}

function isolate({ open, clock, logger }: Batch, failures: readonly Failed[]): void {
  const { store } = open();
  const claims = failures.map(([claim]) => claim);
  store.write(() => isolateJobs(store, claims, clock.now()));
  logger.warn({ jobs: failures.length, code: serialiseError(failures[0]?.[1]).code }, 'batch_isolated');
}

/**
 * Decides what each failure means: a provider that is down or busy, or a full disk, costs a job nothing and holds up all that need
 * it; any other failure counts as an attempt. A job that was isolated already is left as it is. Where one of several models fails, its
 * jobs step aside and the others' go on.
 * @param verdict on the provider's failures: `charge` counts them; `defer` lets others go first after the pause
 * @returns how long to pause, if anyone has to wait
 */
export function settleFailures(batch: Batch, failures: readonly Failed[], verdict?: 'charge' | 'defer'): number | null {
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
  const isModels = failsByModel(batch) && waiting.every(({ code }) => code !== 'storage_full');
  const holdsUp = !(isModels && mayOtherModelAnswer(batch));
  const pauseMs = longest === undefined || !holdsUp ? null : batch.provider.nextPauseMs(longest.ms);
  const stepAsideMs = Math.min(DEFERRED_MOST_MS, (pauseMs ?? longest?.ms ?? 0) + PROVIDER_PAUSE_MS);
  const ended: { claim: HeldJob; state: string | undefined; code: string }[] = [];
  store.write(() => {
    for (const { claim, code, message, retry } of judged) {
      if (retry.kind === 'wait') {
        releaseJob(store, claim, verdict === 'defer' || isModels ? now + stepAsideMs : now, now);
        continue;
      }
      const retryAt = retry.kind === 'retry' ? now + backoffMs(claim.attempts) : null;
      const state = failJob(store, claim, { code, message, retryAt }, now);
      if (state === 'dead' && claim.step !== 'reason') markFailed(store, claim.memory);
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

function failsByModel({ models }: Batch): boolean {
  return models !== undefined && models.failed.size > 0;
}

/** Whether the last word of one of the configured models was no failure. */
function mayOtherModelAnswer({ provider, open }: Batch): boolean {
  const { configuredModels } = open();
  return (
    configuredModels !== null &&
    distinctModels(configuredModels).some((model) => !provider.isModelFailing(nameOf(model)))
  );
}

function startTimer(metrics: Metrics, step: string): (outcome: 'ok' | 'failed') => void {
  const end = metrics.steps.startTimer({ step });
  return (outcome) => void end({ outcome });
}
