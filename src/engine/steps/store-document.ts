import { settleDocument } from '../commands/settle-document.ts';
import { decayLambdaOf, initialSalience } from '../dynamics.ts';
import { failpoint } from '../failpoint.ts';
import type { ParseResult } from '../ports.ts';
import { markMetadata } from '../privacy/screen-memory.ts';
import { type DocumentRow } from '../store/documents.ts';
import { countChunks, insertChunk, ROOT_INDEX } from '../store/chunks.ts';
import { getGenerationRow, putStages, showGeneration, type GenerationRow } from '../store/document-generations.ts';
import { insertDynamics, setState } from '../store/dynamics.ts';
import { putStatedEdge } from '../store/edges.ts';
import { insertJob, type DocumentClaim } from '../store/jobs.ts';
import { holdsLease } from '../store/job-leases.ts';
import { awaitChunks } from '../store/document-jobs.ts';
import { ensureUser, insertMemory } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { putText } from '../store/word-index/memory-text.ts';
import { contentHash } from '../text/content-hash.ts';
import type { DocumentReceipt, Metadata } from '../types.ts';
import { commitInSlices } from './commit-in-slices.ts';
import { keepEqualParts, partsOf, type DocumentPart } from './document-parts.ts';
import { isLabelledAlike, titleOf, type DocumentReading, type IngestOutcome } from './document-reading.ts';
import { relabelParts } from './relabel-parts.ts';
import { removeReadUploads } from './remove-uploads.ts';
import type { StepContext } from './step-context.ts';

/**
 * Least time (ms) for which a slice goes on to write further memories of a document: writing the words of one chunk
 * takes 2 ms.
 */
const PARTS_SLICE_MS = 4;

/**
 * Weight (0..1) of the link from a chunk to its document's root memory. A query spreads relevance both ways along the
 * link, but so little that no hit brings the whole document with it.
 */
const PART_WEIGHT = 0.1;

/**
 * Stores a reading of a document: writes its memories in short slices, hidden, and then makes queries find all of them
 * by one update, in place of those of the earlier reading. Memories that are equal in both readings are kept and not
 * written anew (`keepEqualParts`). After the update, the document's job waits for its chunks.
 * @param parsed has at least one chunk
 * @returns kind `shown`; `lost` if the job's lease was lost before the update, so that queries find what they found
 *   before: the earlier reading, or nothing
 */
export async function storeDocument(
  context: StepContext,
  claim: DocumentClaim,
  reading: DocumentReading,
  parsed: ParseResult,
): Promise<IngestOutcome> {
  const { open, clock } = context;
  const { document, generation } = reading;
  const started = performance.now();
  const parts = partsOf(titleOf(generation, parsed), parsed);
  const kept = keepEqualParts(open().store, reading, parts);
  const isRelabelled = needsRelabelling(open().store, reading, kept);
  let root: number | undefined;
  let isLost = false;
  await commitInSlices(
    () => open().store,
    parts,
    (current, part) => {
      if (isLost || !holdsLease(current, claim)) return void (isLost = true);
      const old = kept.get(part.index);
      const memory = old ?? insertPart(context, current, reading, part);
      insertChunk(current, generation.generation_no, memory, { ...part, isKept: old !== undefined });
      if (part.index === ROOT_INDEX) root = memory;
      else if (root !== undefined)
        putStatedEdge(current, { src: memory, dst: root, type: 'derived_from' }, PART_WEIGHT, clock.now());
    },
    { sliceMs: PARTS_SLICE_MS },
  );
  await failpoint('before-show');
  const { store: current } = open();
  const isShown = current.write(() => {
    if (isLost || !holdsLease(current, claim)) return false;
    const now = clock.now();
    const receipt = receiptOf(current, document, parts, kept);
    showGeneration(current, {
      documentNo: document.document_no,
      generationNo: generation.generation_no,
      receipt,
      now,
    });
    putStages(current, generation.generation_no, { store: Math.round(performance.now() - started) });
    if (!isRelabelled) awaitChunks(current, claim, now);
    settleDocument(current, document.document_no, now);
    return true;
  });
  if (!isShown) return { kind: 'lost' };
  await failpoint('after-show');
  removeReadUploads(open().store);
  const { format, pages } = parsed;
  return isRelabelled
    ? finishShown(context, claim, { ...generation, format, pages })
    : { kind: 'shown', format, pages };
}

/**
 * Gives the memories that were kept from the earlier reading the document's present fields (`relabelParts`) once
 * queries find the document. Then it makes the document's job wait for its chunks. Until that is done the job is at the
 * step `ingest`, and a worker that takes it over does this again. If the claim no longer holds the job, the job is left
 * as it is; the outcome is `shown` even so.
 */
export async function finishShown(
  context: StepContext,
  claim: DocumentClaim,
  generation: GenerationRow,
): Promise<IngestOutcome> {
  await relabelParts(context, claim, generation);
  const { store } = context.open();
  const now = context.clock.now();
  store.write(() => {
    if (!holdsLease(store, claim)) return;
    awaitChunks(store, claim, now);
    settleDocument(store, generation.document_no, now);
  });
  return { kind: 'shown', format: generation.format, pages: generation.pages };
}

/**
 * Whether memories kept from the earlier reading lack fields that are now stated for the whole document, or an earlier
 * run of `relabelParts` may have been interrupted.
 */
function needsRelabelling(
  store: Store,
  { document, generation }: DocumentReading,
  kept: ReadonlyMap<number, number>,
): boolean {
  if (kept.size === 0 || document.live_no === null) return false;
  const live = getGenerationRow(store, document.live_no);
  return live.settled_at === null || !isLabelledAlike(live, generation);
}

function insertPart(context: StepContext, store: Store, reading: DocumentReading, part: DocumentPart): number {
  const { document, generation, trace } = reading;
  const { newId, config, clock } = context;
  const now = clock.now();
  const memory = {
    content: part.content,
    userId: document.user_id,
    sessionId: generation.session_id,
    tags: JSON.parse(generation.tags) as string[],
    files: [],
    metadata: markMetadata(JSON.parse(generation.metadata) as Metadata, part.sensitive ?? []),
    type: generation.type,
    title: part.title,
    gist: part.gist,
    entities: null,
    eventTime: generation.event_time,
    validFrom: null,
    validTo: null,
    expiresAt: generation.expires_at,
    importance: null,
    confidence: 1,
    externalId: null,
  };
  const userNo = ensureUser(store, document.user_id);
  const hash = contentHash(part.content);
  const memoryNo = insertMemory(store, { id: newId(), userNo, memory, contentHash: hash, now, isPart: true });
  insertDynamics(store, {
    memoryNo,
    salience: initialSalience(null, 0),
    decayLambda: decayLambdaOf('semantic', config.OM_DECAY_LAMBDA),
    generationNo: generation.generation_no,
    writerNo: generation.writer_no,
    now,
  });
  putText(store, { ...part, memoryNo, entities: [], tags: memory.tags, files: memory.files, context: '' });
  // Chunks cover the whole text, so a chunk may consist of blanks alone, and then has nothing to embed.
  if (part.content.trim() === '') setState(store, memoryNo, 'ready');
  else {
    const job = { id: newId(), memory: memoryNo, document: document.document_no, step: 'encode', bulk: true } as const;
    insertJob(store, { ...job, trace, now });
  }
  return memoryNo;
}

/**
 * Counts the chunks of a document that are stored anew, kept from the earlier reading, and removed, without the root
 * memory.
 */
function receiptOf(
  store: Store,
  { live_no: live }: DocumentRow,
  parts: readonly DocumentPart[],
  kept: ReadonlyMap<number, number>,
): DocumentReceipt {
  const chunksKept = [...kept.keys()].filter((index) => index !== ROOT_INDEX).length;
  const replaced = live === null ? 0 : countChunks(store, live);
  return { stored: parts.length - 1 - chunksKept, kept: chunksKept, removed: replaced - chunksKept };
}
