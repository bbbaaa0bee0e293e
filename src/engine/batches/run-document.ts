import type { DocumentWait } from '../control/document-shares.ts';
import { DocumentError, type DocumentErrorCode } from '../documents/document-error.ts';
import { removeUpload } from '../documents/uploads.ts';
import { serialiseError } from '../errors.ts';
import { backoffMs, retryCharged, retryOf, type Retry } from '../providers/retry.ts';
import { ingestDocument } from '../steps/ingest-document.ts';
import { failDocument, findDocumentRow } from '../store/documents.ts';
import { releaseUpload } from '../store/uploads.ts';
import { claimDocument, claimThese } from '../store/job-claims.ts';
import { CRASH_BUDGET, failJob, releaseJob, type DocumentClaim } from '../store/jobs.ts';
import { countClaimedPages, isPage, postponeDocuments } from '../store/waiting-documents.ts';
import { eraseAbandonedDocuments } from '../upkeep/tend-documents.ts';
import type { BatchContext } from './batch-context.ts';
import { tracedBatch } from './traced-batch.ts';

/**
 * Claims one document that is due, and reads it. A failure of the reading is recorded in the ledger, not thrown.
 * @param alone true claims only a suspect, which was active at a crash; false leaves suspects out. With true the caller
 *   runs nothing else meanwhile
 * @param onClaimed called before the reading begins, when another reader may claim the next document
 * @returns whether a document was claimed; true also if it was handed back because its tenant has used up its page
 *   fetches; false without a claim if the tenant has used up its parser time
 */
export async function runNextDocument(
  context: BatchContext,
  { alone, onClaimed }: { readonly alone: boolean; readonly onClaimed: () => void },
  signal?: AbortSignal,
): Promise<boolean> {
  const { open, owner, config, clock } = context;
  if (waitsForParser(context)) return false;
  const { store } = open();
  const claim = store.write(() =>
    claimDocument(store, { alone, owner, leaseMs: config.OM_LEASE_MS, now: clock.now() }),
  );
  if (claim === undefined) return false;
  // Other documents of the tenant may go on, so the caller looks again.
  if (waitsForFetch(context, claim)) return true;
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
  if (waitsForParser(context)) return 0;
  const { store } = open();
  const claims = store.write(() =>
    claimThese(store, { step: 'ingest', jobNos, alone, owner, leaseMs: config.OM_LEASE_MS, now: clock.now() }),
  );
  for (const claim of claims) {
    if (waitsForFetch(context, claim)) continue;
    await tracedBatch(context, 'ingest', [claim], () => runDocument(context, claim, signal));
  }
  return claims.length;
}

/**
 * Postpones the tenant's documents if the tenant has used up its limit of parser time.
 * @returns whether it is used up
 */
function waitsForParser(context: BatchContext): boolean {
  const wait = context.share?.waitForParser();
  if (wait === undefined) return false;
  const { store } = context.open();
  store.write(() => postpone(context, wait, { pagesOnly: false }));
  return true;
}

/**
 * Hands a claimed page back, and postpones the tenant's other pages, if the tenant has used up its limit of page
 * fetches.
 * @returns whether it is used up; false for a document that is no page
 */
function waitsForFetch(context: BatchContext, claim: DocumentClaim): boolean {
  const { share, open, clock } = context;
  const { store } = open();
  if (share === undefined || !isPage(store, claim)) return false;
  const handBack = (wait: DocumentWait) => {
    // It comes first among those that are due, and so keeps its turn.
    releaseJob(store, claim, 0, clock.now());
    postpone(context, wait, { pagesOnly: true });
    return true;
  };
  // Workers that claim at the same time count each other: the file's write lock lets one go before the other.
  const isHandedBack = store.write(() => {
    const wait = share.waitForPlace(countClaimedPages(store));
    return wait !== undefined && handBack(wait);
  });
  if (isHandedBack) return true;
  const wait = share.takeFetch();
  return wait !== undefined && store.write(() => handBack(wait));
}

function postpone(
  { open, clock, metrics }: BatchContext,
  { limit, message, ms, apartMs }: DocumentWait,
  { pagesOnly }: { readonly pagesOnly: boolean },
): void {
  const { store } = open();
  const code = 'rate_limited';
  const postponed = postponeDocuments(store, { pagesOnly, ms, apartMs, code, message, now: clock.now() });
  metrics.postponedDocuments.inc({ limit }, postponed);
}

async function runDocument(context: BatchContext, claim: DocumentClaim, signal?: AbortSignal): Promise<void> {
  const { metrics, logger } = context;
  const observe = metrics.steps.startTimer({ step: 'ingest' });
  try {
    const outcome = await ingestDocument(context, claim, signal);
    observe({ outcome: 'ok' });
    const format = outcome.kind === 'shown' ? (outcome.format ?? 'none') : 'none';
    metrics.documents.inc({ format, outcome: outcome.kind });
    if (outcome.kind === 'shown') metrics.documentPages.inc(outcome.pages ?? 1);
    logger.debug({ jobId: claim.id, outcome: outcome.kind }, 'document_read');
    // This erases the generation that was replaced, and what earlier attempts left.
    await eraseAbandonedDocuments(context);
  } catch (error) {
    observe({ outcome: 'failed' });
    context.tracing?.active()?.fail(error instanceof DocumentError ? error.code : serialiseError(error).code);
    settleFailure(context, claim, error, signal);
  }
}

function settleFailure(
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
 * Errors of a document that the next attempt may not have, with the greatest number of attempts for each:
 * `OM_JOB_ATTEMPTS`, or this number if it is lower. Any other DocumentError ends the job.
 */
const MAY_PASS: Partial<Record<DocumentErrorCode, number>> = { parser_crashed: CRASH_BUDGET, fetch_failed: Infinity };

/**
 * Whether another attempt may succeed, now or when the job is retried by hand. A fault of the file itself stays, so
 * that the file is not needed again.
 */
function mayPass(error: unknown): boolean {
  return !(error instanceof DocumentError) || error.code in MAY_PASS;
}

function retryOfDocument(error: unknown, { attempts }: DocumentClaim, attemptsMax: number): Retry {
  if (!(error instanceof DocumentError)) return retryOf(error, { attempts, attemptsMax });
  return retryCharged({ attempts, attemptsMax: Math.min(attemptsMax, MAY_PASS[error.code] ?? 0) });
}
