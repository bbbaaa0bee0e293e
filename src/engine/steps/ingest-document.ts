import { setImmediate as yieldTurn } from 'node:timers/promises';
import { eraseMemories } from '../commands/erase.ts';
import { settleDocument } from '../commands/settle-document.ts';
import type { DocumentWait } from '../control/document-shares.ts';
import { DocumentError, NO_TEXT_FOUND } from '../documents/document-error.ts';
import { requireRoomToRead } from '../documents/uploads.ts';
import { EngineError, isEngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import type { ParseResult } from '../ports.ts';
import { countChunks, deleteChunks, listMemoriesOfGeneration } from '../store/chunks.ts';
import {
  dropNextGeneration,
  getGenerationRow,
  notePagesDone,
  putParsed,
  putStages,
  showGeneration,
} from '../store/document-generations.ts';
import { awaitChunks, isAwaitingChunks } from '../store/document-jobs.ts';
import { findDocumentRow, setDocumentState } from '../store/documents.ts';
import { finishJob, type DocumentClaim } from '../store/jobs.ts';
import { holdsLease } from '../store/job-leases.ts';
import { hasUploadParts } from '../store/upload-parts.ts';
import { traced } from '../tracing.ts';
import { forgetSize } from '../store/waiting-documents.ts';
import { titleOf, type DocumentReading, type IngestOutcome } from './document-reading.ts';
import { obtainFile, type SourceFile } from './obtain-file.ts';
import { removeReadUploads } from './remove-uploads.ts';
import { writeContextOf, type StepContext } from './step-context.ts';
import { waitToStore } from './room-for-memories.ts';
import { finishShown, storeDocument } from './store-document.ts';

/**
 * Runs the ingest step of a document. Its file is fetched if it has a URL, and read and cut in a child process. Its
 * chunks are written as memories of a hidden generation (reading of the document), in short slices, each with a job
 * that embeds it. One update then makes queries find all of them. A step that was interrupted begins anew: what it had
 * written is still hidden, and is erased first. With the outcome `waits` the claim still holds the job, and the caller
 * makes it wait.
 * @throws DocumentError if the file cannot be fetched or read, if the privacy policy refuses its text, or if it has
 *   more parts than the tenant may ever store; EngineError `storage_full` if there is no room to read it, `internal`
 *   without a parser, `unavailable` if `signal` aborts, if no process that reads files can be started, or of
 *   `PrivacyGuard.document`
 */
export async function ingestDocument(
  context: StepContext,
  claim: DocumentClaim,
  signal?: AbortSignal,
): Promise<IngestOutcome> {
  const reading = begin(context, claim);
  if (reading === undefined) return { kind: 'lost' };
  if (reading.isShown) return finishShown(context, claim, reading.generation);
  await eraseBrokenOff(context, claim, reading);
  const { store } = context.open();
  if (!hasUploadParts(store)) requireRoomToRead(store.path, reading.generation.bytes ?? 0);
  const { tracing } = context;
  const parsed = await whileHeld(context, claim, signal, async (held) => {
    const fetches = reading.generation.source === 'url';
    const source = await traced(fetches ? tracing : null, 'fetch', {}, () => obtainFile(context, reading, held));
    return source === 'unchanged'
      ? source
      : traced(tracing, 'parse', {}, () => parse(context, claim, reading, { source, signal: held }));
  });
  if (parsed === 'lost') return { kind: 'lost' };
  if (parsed === 'unchanged') return leaveAsItWas(context, claim, reading);
  if ('wait' in parsed) return { kind: 'waits', wait: parsed.wait };
  await failpoint('after-parse');
  return parsed.chunks.length === 0
    ? endEmpty(context, claim, reading, parsed)
    : traced(tracing, 'store chunks', { attributes: { 'cairn.chunks': parsed.chunks.length } }, () =>
        storeDocument(context, claim, reading, parsed),
      );
}

/**
 * Returns the document and the generation that a claim is about. Unless queries find the generation already, it sets
 * the document's state to `processing`, and stores for how long the document was queued.
 * @returns undefined if the job was cancelled, or another worker holds it
 */
function begin({ open, clock }: StepContext, claim: DocumentClaim): DocumentReading | undefined {
  const { store } = open();
  const now = clock.now();
  return store.write(() => {
    const document = findDocumentRow(store, claim.documentNo);
    const generationNo = document?.next_no ?? document?.live_no;
    if (!holdsLease(store, claim) || document === undefined || generationNo == null) return undefined;
    const generation = getGenerationRow(store, generationNo);
    const isShown = document.next_no === null;
    const { trace } = claim;
    if (isShown) return { document, generation, isShown, trace };
    setDocumentState(store, document.document_no, { state: 'processing', now });
    if (generation.chunks > 0) forgetSize(store, generationNo);
    putStages(store, generation.generation_no, { queued: Math.max(0, now - generation.created_at) });
    return { document, generation, isShown, trace };
  });
}

/** Number of memories of an interrupted attempt that one transaction erases. */
const PARTS_ERASED_AT_ONCE = 50;

/** Erases the memories that an interrupted attempt has written, as long as the claim holds the job. */
async function eraseBrokenOff(
  context: StepContext,
  claim: DocumentClaim,
  { generation }: DocumentReading,
): Promise<void> {
  for (;;) {
    const { store } = context.open();
    const left = store.write(() => {
      if (!holdsLease(store, claim)) return 0;
      const memoryNos = listMemoriesOfGeneration(store, generation.generation_no, PARTS_ERASED_AT_ONCE);
      if (memoryNos.length > 0) eraseMemories(writeContextOf(context), memoryNos);
      else deleteChunks(store, generation.generation_no);
      return memoryNos.length;
    });
    if (left === 0) return;
    await yieldTurn();
  }
}

/** Time between two checks of whether a document that is being read is still wanted (ms). */
const HELD_CHECK_MS = 500;

/**
 * Runs the work of a step that may take long. Every half second it checks whether the claim still holds the job: it may
 * have been cancelled, its document deleted, or its lease lost. If not, the signal that `run` gets is aborted, which
 * ends a parser's process.
 * @returns what `run` returned; `lost` if it threw after that abort
 */
async function whileHeld<Result>(
  { open }: StepContext,
  claim: DocumentClaim,
  signal: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<Result>,
): Promise<Result | 'lost'> {
  const lost = new AbortController();
  const timer = setInterval(() => {
    try {
      if (!holdsLease(open().store, claim)) lost.abort();
    } catch {
      // If the store itself fails, the step meets the error when it writes next, and handles it there.
    }
  }, HELD_CHECK_MS);
  try {
    return await run(AbortSignal.any([lost.signal, ...(signal === undefined ? [] : [signal])]));
  } catch (error) {
    if (lost.signal.aborted) return 'lost';
    throw error;
  } finally {
    clearInterval(timer);
  }
}

/** Shortest time between two updates of the number of pages that were read (ms). */
const PROGRESS_MS = 1_000;

/**
 * Reads the file of a document, and stores what was found about it.
 * @returns the text and fields of the file, screened; or only `wait` if the tenant may not store as many memories now
 */
async function parse(
  { open, config, documentParser, guard, metrics, share }: StepContext,
  claim: DocumentClaim,
  { generation }: DocumentReading,
  { source, signal }: { readonly source: SourceFile; readonly signal: AbortSignal | undefined },
): Promise<ParseResult | { readonly wait: DocumentWait }> {
  if (documentParser === null) throw new EngineError('internal', 'this worker reads no documents');
  const started = performance.now();
  let notedAt = started;
  metrics.documentBytes.inc(source.bytes.length);
  const read = await documentParser.parse(
    { ...source, sizeTokens: config.OM_CHUNK_TOKENS, overlapTokens: config.OM_CHUNK_OVERLAP_TOKENS },
    {
      tenant: open().store.path,
      signal,
      onParsed: (ms) => share?.spendParser(ms),
      onPage(done) {
        if (performance.now() - notedAt < PROGRESS_MS) return;
        notedAt = performance.now();
        const { store } = open();
        store.write(() => notePagesDone(store, generation.generation_no, done));
      },
    },
  );
  const parsed = await screened(guard, read);
  const { store } = open();
  const wait = store.write(() => {
    putParsed(store, generation.generation_no, titleOf(generation, parsed), parsed);
    putStages(store, generation.generation_no, { parse: Math.round(performance.now() - started) });
    return parsed.chunks.length === 0 ? undefined : waitToStore(store, share, claim, parsed.chunks.length + 1);
  });
  return wait === undefined ? parsed : { wait };
}

/**
 * Screens the text and fields that were read of a document.
 * @throws DocumentError `refused_content` if the tenant's privacy policy refuses it
 */
async function screened(guard: StepContext['guard'], parsed: ParseResult): Promise<ParseResult> {
  try {
    return (await guard?.document(parsed)) ?? parsed;
  } catch (error) {
    if (isEngineError(error, 'unprocessable')) throw new DocumentError('refused_content', error.message);
    throw error;
  }
}

/**
 * Ends the reading of a web page that has not changed; queries find the text of the earlier reading. The job waits for
 * the chunks of that reading which are still to be embedded. Nothing is written if the claim no longer holds the job;
 * the outcome is the same.
 */
async function leaveAsItWas(
  context: StepContext,
  claim: DocumentClaim,
  { document }: DocumentReading,
): Promise<IngestOutcome> {
  const { document_no: documentNo, live_no: live } = document;
  const { store } = context.open();
  const now = context.clock.now();
  const unfinished = store.write(() => {
    if (!holdsLease(store, claim)) return undefined;
    dropNextGeneration(store, documentNo);
    setDocumentState(store, documentNo, { state: 'processing', now });
    const shown = getGenerationRow(store, live!);
    // This reading may have cancelled the earlier job before that had given the kept memories their fields.
    if (shown.settled_at === null && !isAwaitingChunks(store, documentNo)) return shown;
    awaitChunks(store, claim, now);
    settleDocument(store, documentNo, now);
    return undefined;
  });
  if (unfinished !== undefined) await finishShown(context, claim, unfinished);
  return { kind: 'unchanged' };
}

/**
 * Ends the reading of a file that has no text. The text of earlier readings is removed from the document, too. The
 * document is left as it is if the claim no longer holds the job; the outcome is the same.
 */
function endEmpty(
  { open, clock }: StepContext,
  claim: DocumentClaim,
  { document, generation }: DocumentReading,
  parsed: ParseResult,
): IngestOutcome {
  const { store } = open();
  store.write(() => {
    if (!holdsLease(store, claim)) return;
    const now = clock.now();
    const { document_no: documentNo, live_no: replaced } = document;
    const { generation_no: generationNo } = generation;
    const receipt = { stored: 0, kept: 0, removed: replaced === null ? 0 : countChunks(store, replaced) };
    showGeneration(store, { documentNo, generationNo, receipt, now });
    const message = `no text was found in it${parsed.format === 'pdf' ? ': a scan needs text recognition first' : ''}`;
    setDocumentState(store, documentNo, { state: 'empty', error: { code: NO_TEXT_FOUND, message }, now });
    finishJob(store, claim, now);
  });
  removeReadUploads(store);
  return { kind: 'empty' };
}
