import type { DocumentWait } from '../control/document-shares.ts';
import { DocumentError, type DocumentErrorCode } from '../documents/document-error.ts';
import { removeUpload } from '../documents/uploads.ts';
import { serialiseError } from '../errors.ts';
import { backoffMs, retryCharged, retryOf, type Retry } from '../providers/retry.ts';
import { ingestDocument } from '../steps/ingest-document.ts';
import { waitToRead } from '../steps/room-for-memories.ts';
import { failDocument, findDocumentRow, setDocumentState } from '../store/documents.ts';
import { holdsLease } from '../store/job-leases.ts';
import { countMemoriesUpTo } from '../store/memory-counts.ts';
import { usedBytes } from '../store/used-bytes.ts';
import { releaseUpload } from '../store/uploads.ts';
import { claimDocument, claimThese } from '../store/job-claims.ts';
import { CRASH_BUDGET, failJob, releaseJob, type DocumentClaim } from '../store/jobs.ts';
import { countClaimedPages, isPage, noteWait, postponeDocuments } from '../store/waiting-documents.ts';
import { eraseAbandonedDocuments } from '../upkeep/tend-documents.ts';
import type { BatchContext } from './batch-context.ts';
import { tracedBatch } from './traced-batch.ts';

/**
 * Claims one document that is due, and reads it. A failure of the reading is recorded in the ledger, not thrown.
 * @param alone true claims only a suspect, which was active at a crash; false leaves suspects out. With true the caller
 *   runs nothing else meanwhile
 * @param onClaimed called before the reading begins, when another reader may claim the next document
 * @returns whether a document was claimed; true also if the document was given back because its tenant has used up its
 *   page fetches or its quota of memories; false, without a claim, if the tenant has used up its parser time or its
 *   quota of disk space
 */
export async function runNextDocument(
  context: BatchContext,
  { alone, onClaimed }: { readonly alone: boolean; readonly onClaimed: () => void },
  signal?: AbortSignal,
): Promise<boolean> {
  const { open, owner, config, clock } = context;
  if (postponedForParser(context)) return false;
  const { store } = open();
  const claim = store.write(() =>
    claimDocument(store, { alone, owner, leaseMs: config.OM_LEASE_MS, now: clock.now() }),
  );
  if (claim === undefined) return false;
  // Other documents of the tenant may go on, so the caller looks again.
  if (handedBackForMemories(context, claim) || handedBackForFetch(context, claim)) return true;
  onClaimed();
  await tracedBatch(context, 'ingest', [claim], () => runDocument(context, claim, signal));
  return true;
}

/**
 * Reads the documents that a queue named, one after the other, if the ledger still has them due. Failures are recorded
 * in the ledger, not thrown.
 * @param alone whether the jobs are suspects: the caller runs nothing else meanwhile
 * @returns how many were claimed
 */
export async function runNamedDocuments(
  context: BatchContext,
  { jobNos, alone }: { readonly jobNos: readonly number[]; readonly alone: boolean },
  signal?: AbortSignal,
): Promise<number> {
  const { open, owner, config, clock } = context;
  if (postponedForParser(context)) return 0;
  const { store } = open();
  const claims = store.write(() =>
    claimThese(store, { step: 'ingest', jobNos, alone, owner, leaseMs: config.OM_LEASE_MS, now: clock.now() }),
  );
  for (const claim of claims) {
    if (handedBackForMemories(context, claim) || handedBackForFetch(context, claim)) continue;
    await tracedBatch(context, 'ingest', [claim], () => runDocument(context, claim, signal));
  }
  return claims.length;
}

/**
 * Postpones the tenant's documents that are due, at most 1,000, if the tenant has used up its limit of parser time or
 * its quota of disk space.
 * @returns whether it is used up, so that none is to be read now
 */
function postponedForParser(context: BatchContext): boolean {
  const { store } = context.open();
  const wait =
    context.share?.waitForParser() ??
    // In PostgreSQL the bytes of one tenant are not counted.
    (store.words === null ? context.share?.waitForRoom(() => usedBytes(store)) : undefined);
  if (wait === undefined) return false;
  store.write(() => postpone(context, wait, { which: 'all' }));
  return true;
}

/**
 * Gives a claimed page back to the ledger, and postpones the tenant's other pages that are due, if the tenant has used
 * up one of its limits of page fetches: in a minute, or at the same time.
 * @returns whether a limit is used up, so that the page is not to be read now; false for a document that is no page
 */
function handedBackForFetch(context: BatchContext, claim: DocumentClaim): boolean {
  const { share, open, clock } = context;
  const { store } = open();
  if (share === undefined || !isPage(store, claim)) return false;
  const handBack = (wait: DocumentWait) => {
    // With the due time 0, the page comes before all other due jobs and so keeps its turn.
    releaseJob(store, claim, 0, clock.now());
    postpone(context, wait, { which: 'pages' });
    return true;
  };
  // Workers that claim at the same time count the claims of each other, since the file's write lock puts them in order.
  const isHandedBack = store.write(() => {
    const wait = share.waitForPlace(countClaimedPages(store));
    return wait !== undefined && handBack(wait);
  });
  if (isHandedBack) return true;
  const wait = share.takeFetch();
  return wait !== undefined && store.write(() => handBack(wait));
}

/**
 * Gives a claimed document back to the ledger if its tenant's quota of memories has no room for it. If there is no room
 * for a single one, the tenant's other due documents of which queries find nothing yet are postponed with it.
 * @returns whether there is no room, so that the document is not to be read now
 */
function handedBackForMemories(context: BatchContext, claim: DocumentClaim): boolean {
  const { share, open } = context;
  const most = share?.maxMemories() ?? 0;
  if (share === undefined || most === 0) return false;
  const { store } = open();
  return store.write(() => {
    const wait = waitToRead(store, share, claim);
    if (wait === undefined) return false;
    giveBack(context, claim, wait);
    const isFull = share.waitForMemories(countMemoriesUpTo(store, most - 1), 1);
    if (isFull !== undefined) postpone(context, isFull, { which: 'new' });
    return true;
  });
}

/** Gives a claimed document back to the ledger, to be tried again later. Call inside a write. */
function giveBack(
  { open, clock, metrics }: BatchContext,
  claim: DocumentClaim,
  { limit, message, ms }: DocumentWait,
): void {
  const { store } = open();
  const now = clock.now();
  if (!holdsLease(store, claim)) return;
  releaseJob(store, claim, now + ms, now);
  noteWait(store, claim, { code: codeOf(limit), message });
  metrics.postponedDocuments.inc({ limit });
}

/** Returns the error code of a job that waits because of a limit. */
function codeOf(limit: DocumentWait['limit']): 'storage_full' | 'rate_limited' {
  return limit === 'max_mb' || limit === 'max_memories' ? 'storage_full' : 'rate_limited';
}

function postpone(
  { open, clock, metrics }: BatchContext,
  { limit, message, ms, apartMs }: DocumentWait,
  { which }: { readonly which: 'all' | 'pages' | 'new' },
): void {
  const { store } = open();
  const code = codeOf(limit);
  const postponed = postponeDocuments(store, { which, ms, apartMs, code, message, now: clock.now() });
  metrics.postponedDocuments.inc({ limit }, postponed);
}

async function runDocument(context: BatchContext, claim: DocumentClaim, signal?: AbortSignal): Promise<void> {
  const { metrics, logger } = context;
  const observe = metrics.steps.startTimer({ step: 'ingest' });
  try {
    const outcome = await ingestDocument(context, claim, signal);
    observe({ outcome: 'ok' });
    if (outcome.kind === 'waits') {
      const { store } = context.open();
      return store.write(() => {
        if (holdsLease(store, claim))
          setDocumentState(store, claim.documentNo, { state: 'queued', now: context.clock.now() });
        giveBack(context, claim, outcome.wait);
      });
    }
    const format = outcome.kind === 'shown' ? (outcome.format ?? 'none') : 'none';
    metrics.documents.inc({ format, outcome: outcome.kind });
    if (outcome.kind === 'shown') metrics.documentPages.inc(outcome.pages ?? 1);
    logger.debug({ jobId: claim.id, outcome: outcome.kind }, 'document_read');
    // This erases the generation that was replaced, and what earlier attempts left behind.
    await eraseAbandonedDocuments(context);
  } catch (error) {
    observe({ outcome: 'failed' });
    context.tracing?.active()?.fail(error instanceof DocumentError ? error.code : serialiseError(error).code);
    recordFailure(context, claim, error, signal);
  }
}

function recordFailure(
  { open, clock, config, metrics, logger }: BatchContext,
  claim: DocumentClaim,
  error: unknown,
  signal: AbortSignal | undefined,
): void {
  const { store } = open();
  const now = clock.now();
  const { code, message } = error instanceof DocumentError ? error : serialiseError(error);
  const retry = signal?.aborted
    ? { kind: 'wait' as const, ms: 0 }
    : retryOfDocument(error, claim, config.OM_JOB_ATTEMPTS);
  const { state, upload } = store.write(() => {
    if (retry.kind === 'wait') {
      releaseJob(store, claim, now + retry.ms, now);
      return { state: 'queued', upload: '' };
    }
    const retryAt = retry.kind === 'retry' ? now + backoffMs(claim.attempts) : null;
    const ended = failJob(store, claim, { code, message, retryAt }, now);
    if (ended !== 'dead') return { state: ended ?? 'lost', upload: '' };
    const next = findDocumentRow(store, claim.documentNo)?.next_no ?? null;
    failDocument(store, claim.documentNo, { code, message, now });
    return { state: ended, upload: next === null || mayPass(error) ? '' : releaseUpload(store, next) };
  });
  removeUpload(store.path, upload);
  if (retry.kind !== 'wait') {
    metrics.documentFailures.inc({ code });
    metrics.failedAttempts.inc({ step: 'ingest', code });
  }
  if (state === 'dead') {
    metrics.finishedJobs.inc({ state: 'dead' });
    metrics.documents.inc({ format: 'none', outcome: 'failed' });
  }
  logger[state === 'queued' ? 'debug' : 'warn']({ jobId: claim.id, step: 'ingest', code, state }, 'document_failed');
}

/**
 * Codes of the errors of a document that may not occur again at the next attempt, each with the greatest number of
 * attempts, if that is lower than `OM_JOB_ATTEMPTS`. A DocumentError with any other code ends the job.
 */
const MAY_PASS: Partial<Record<DocumentErrorCode, number>> = {
  parser_crashed: CRASH_BUDGET,
  fetch_failed: Infinity,
  // Once the quota was raised, the job can be retried by hand.
  storage_full: 0,
};

/**
 * Tells whether another attempt may succeed, now or when the job is retried by hand. If not, the fault is in the file
 * itself, and the uploaded file is not needed any more.
 */
function mayPass(error: unknown): boolean {
  return !(error instanceof DocumentError) || error.code in MAY_PASS;
}

function retryOfDocument(error: unknown, { attempts }: DocumentClaim, attemptsMax: number): Retry {
  if (!(error instanceof DocumentError)) return retryOf(error, { attempts, attemptsMax });
  return retryCharged({ attempts, attemptsMax: Math.min(attemptsMax, MAY_PASS[error.code] ?? 0) });
}
