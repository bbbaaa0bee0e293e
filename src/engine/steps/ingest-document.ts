import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { eraseMemories } from '../commands/erase.ts';
import { settleDocument } from '../commands/settle-document.ts';
import { DocumentError, NO_TEXT_FOUND } from '../documents/document-error.ts';
import { readUpload, requireRoomToRead } from '../documents/uploads.ts';
import { decayLambdaOf, initialSalience } from '../dynamics.ts';
import { EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import type { FetchedFile, ParseResult } from '../ports.ts';
import {
  countChunks,
  deleteChunks,
  dropNextGeneration,
  findDocumentRow,
  getGenerationRow,
  insertChunk,
  listMemoriesOfGeneration,
  notePagesDone,
  putFetched,
  putParsed,
  putStages,
  readChunkTexts,
  ROOT_INDEX,
  setDocumentState,
  showGeneration,
  type ChunkPlace,
  type DocumentRow,
  type GenerationRow,
} from '../store/documents.ts';
import { insertDynamics, setState } from '../store/dynamics.ts';
import { putStatedEdge } from '../store/edges.ts';
import { awaitChunks, finishJob, holdsLease, insertJob, type DocumentClaim } from '../store/jobs.ts';
import { ensureUser, insertMemory } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { putText } from '../store/word-index/memory-text.ts';
import { contentHash } from '../text/content-hash.ts';
import { gistOf } from '../text/gist.ts';
import { traced } from '../tracing.ts';
import type { DocumentFormat, DocumentReceipt, Metadata } from '../types.ts';
import { commitInSlices } from './commit-in-slices.ts';
import { relabelParts } from './relabel-parts.ts';
import { removeReadUploads } from './remove-uploads.ts';
import type { StepContext } from './step-context.ts';

/**
 * The ingest step: a document's file is fetched if need be, read and cut in a child process, and its chunks are written as memories
 * of a hidden generation, in short slices, each owed its vector at once. One update then shows all of them. Broken off anywhere, it
 * begins anew: what it had written is hidden still, and goes first.
 */
export async function ingestDocument(
  context: StepContext,
  claim: DocumentClaim,
  signal?: AbortSignal,
): Promise<IngestOutcome> {
  const reading = begin(context, claim);
  if (reading === undefined) return { kind: 'lost' };
  if (reading.isShown) return finish(context, claim, reading.generation);
  await eraseBrokenOff(context, claim, reading);
  requireRoomToRead(context.open().store.path, reading.generation.bytes ?? 0);
  const { tracing } = context;
  const fetches = reading.generation.source === 'url';
  const source = await traced(fetches ? tracing : null, 'fetch', {}, () => obtain(context, reading, signal));
  if (source === 'unchanged') return leaveAsItWas(context, claim, reading);
  const parsed = await traced(tracing, 'parse', {}, () => parse(context, reading, source, signal));
  await failpoint('after-parse');
  return parsed.chunks.length === 0
    ? endEmpty(context, claim, reading, parsed)
    : traced(tracing, 'store chunks', { attributes: { 'cairn.chunks': parsed.chunks.length } }, () =>
        store(context, claim, reading, parsed),
      );
}

export type IngestOutcome =
  /** The job was cancelled, or another worker has it. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'empty' }
  | { readonly kind: 'shown'; readonly format: DocumentFormat | null; readonly pages: number | null };

interface Reading {
  readonly document: DocumentRow;
  readonly generation: GenerationRow;
  /** Queries find it already: an earlier attempt was broken off after that. */
  readonly isShown: boolean;
  /** W3C trace context of the request that handed it in, with which its chunks go on. */
  readonly trace: string | null;
}

function begin({ open, clock }: StepContext, claim: DocumentClaim): Reading | undefined {
  const { store } = open();
  const now = clock.now();
  return store.write(() => {
    const document = findDocumentRow(store, claim.document);
    const generationNo = document?.next_no ?? document?.live_no;
    if (!holdsLease(store, claim) || document === undefined || generationNo == null) return undefined;
    const generation = getGenerationRow(store, generationNo);
    const isShown = document.next_no === null;
    const { trace } = claim;
    if (isShown) return { document, generation, isShown, trace };
    setDocumentState(store, document.document_no, { state: 'processing', now });
    putStages(store, generation.generation_no, { queued: Math.max(0, now - generation.created_at) });
    return { document, generation, isShown, trace };
  });
}

const ERASE_SLICE = 50;

/** What an attempt that was broken off has written. */
async function eraseBrokenOff(context: StepContext, claim: DocumentClaim, { generation }: Reading): Promise<void> {
  for (;;) {
    const { store, indexes } = context.open();
    const left = store.write(() => {
      if (!holdsLease(store, claim)) return 0;
      const seqs = listMemoriesOfGeneration(store, generation.generation_no, ERASE_SLICE);
      const { config, newId, clock } = context;
      const write = { store, indexes, config, newId, now: clock.now(), backlog: { atMost: 0 } };
      if (seqs.length > 0) eraseMemories(write, seqs);
      else deleteChunks(store, generation.generation_no);
      return seqs.length;
    });
    if (left === 0) return;
    await turn();
  }
}

type Source = Pick<FetchedFile, 'bytes' | 'declared' | 'charset' | 'extension'>;

async function obtain(
  context: StepContext,
  { document, generation }: Reading,
  signal: AbortSignal | undefined,
): Promise<Source | 'unchanged'> {
  const { open, pageFetcher, config } = context;
  if (generation.source === 'upload') {
    const bytes = await readUpload(open().store.path, generation.upload);
    const { declared, charset, file_name: fileName } = generation;
    return { bytes, declared, charset, extension: extensionOf(fileName) };
  }
  if (!config.OM_URL_INGEST || pageFetcher === null)
    throw new DocumentError('fetch_refused', 'OM_URL_INGEST is off: documents are not fetched from URLs');
  const started = performance.now();
  const live = document.live_no === null ? null : getGenerationRow(open().store, document.live_no);
  const isAsked = !generation.always && live !== null && live.format !== null && isGivenAlike(live, generation);
  const known = isAsked ? { etag: live.etag, lastModified: live.last_modified } : null;
  const fetched = await pageFetcher.fetch(generation.url, known, signal);
  if (fetched === 'unchanged') return fetched;
  const { store } = open();
  store.write(() => {
    putFetched(store, generation.generation_no, fetched);
    putStages(store, generation.generation_no, { fetch: Math.round(performance.now() - started) });
  });
  return isAsked && live.file_hash?.equals(fetched.sha256) ? 'unchanged' : fetched;
}

/** Whether the caller said the same about both, and of each part of them. */
function isGivenAlike(one: GenerationRow, other: GenerationRow): boolean {
  const given = ['source', 'url', 'given_title'] as const;
  return isLabelledAlike(one, other) && given.every((name) => one[name] === other[name]);
}

function isLabelledAlike(one: GenerationRow, other: GenerationRow): boolean {
  const labels = ['session_id', 'type', 'tags', 'metadata', 'event_time', 'expires_at'] as const;
  return labels.every((name) => one[name] === other[name]);
}

function extensionOf(fileName: string): string {
  return /\.([A-Za-z0-9_+-]{1,16})$/.exec(fileName)?.[1]?.toLowerCase() ?? '';
}

const PROGRESS_MS = 1_000;

async function parse(
  { open, config, documentParser, metrics }: StepContext,
  { generation }: Reading,
  source: Source,
  signal: AbortSignal | undefined,
): Promise<ParseResult> {
  if (documentParser === null) throw new EngineError('internal', 'this worker reads no documents');
  const started = performance.now();
  let notedAt = started;
  metrics.documentBytes.inc(source.bytes.length);
  const parsed = await documentParser.parse(
    { ...source, sizeTokens: config.OM_CHUNK_TOKENS, overlapTokens: config.OM_CHUNK_OVERLAP_TOKENS },
    {
      signal,
      onPage(done) {
        if (performance.now() - notedAt < PROGRESS_MS) return;
        notedAt = performance.now();
        const { store } = open();
        store.write(() => notePagesDone(store, generation.generation_no, done));
      },
    },
  );
  const { store } = open();
  store.write(() => {
    putParsed(store, generation.generation_no, titleOf(generation, parsed), parsed);
    putStages(store, generation.generation_no, { parse: Math.round(performance.now() - started) });
  });
  return parsed;
}

/** As given, as the file says, else what the file is called. */
function titleOf(generation: GenerationRow, parsed: ParseResult): string {
  return generation.given_title || parsed.title || generation.file_name.replace(/\.[^.]*$/, '');
}

function leaveAsItWas({ open, clock }: StepContext, claim: DocumentClaim, { document }: Reading): IngestOutcome {
  const { store } = open();
  store.write(() => {
    if (!holdsLease(store, claim)) return;
    dropNextGeneration(store, document.document_no);
    setDocumentState(store, document.document_no, { state: 'ready', now: clock.now() });
    finishJob(store, claim, clock.now());
  });
  return { kind: 'unchanged' };
}

/** Read well, and nothing to find: what the document said before is gone too. */
function endEmpty(
  { open, clock }: StepContext,
  claim: DocumentClaim,
  { document, generation }: Reading,
  parsed: ParseResult,
): IngestOutcome {
  const { store } = open();
  store.write(() => {
    if (!holdsLease(store, claim)) return;
    const now = clock.now();
    const { document_no: documentNo } = document;
    const { generation_no: generationNo } = generation;
    showGeneration(store, { documentNo, generationNo, receipt: { stored: 0, kept: 0, removed: 0 }, now });
    const message = `no text was found in it${parsed.format === 'pdf' ? ': a scan needs text recognition first' : ''}`;
    setDocumentState(store, documentNo, { state: 'empty', error: { code: NO_TEXT_FOUND, message }, now });
    finishJob(store, claim, now);
  });
  removeReadUploads(store);
  return { kind: 'empty' };
}

/** A memory of the document as it is about to be. */
interface Part extends ChunkPlace {
  readonly title: string;
  readonly content: string;
  readonly gist: string;
}

async function store(
  context: StepContext,
  claim: DocumentClaim,
  reading: Reading,
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
      insertChunk(current, generation.generation_no, memory, part);
      if (part.index === ROOT_INDEX) root = memory;
      else if (root !== undefined)
        putStatedEdge(current, { src: memory, dst: root, type: 'derived_from' }, PART_WEIGHT, clock.now());
    },
    PARTS_SLICE_MS,
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
  return isRelabelled ? finish(context, claim, { ...generation, format, pages }) : { kind: 'shown', format, pages };
}

/** What is left to do once a document is shown: until it is done, the job is not, and whoever takes it over does it again. */
async function finish(context: StepContext, claim: DocumentClaim, generation: GenerationRow): Promise<IngestOutcome> {
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

/** Whether parts that were kept are to say what is said of the whole now, or were when their last relabelling was broken off. */
function needsRelabelling(store: Store, { document, generation }: Reading, kept: ReadonlyMap<number, number>): boolean {
  if (kept.size === 0 || document.live_no === null) return false;
  const live = getGenerationRow(store, document.live_no);
  return live.settled_at === null || !isLabelledAlike(live, generation);
}

/** The words of a chunk take 2 ms alone. */
const PARTS_SLICE_MS = 4;

/** A part leads to its document and back, but so weakly that no hit drags the whole document along. */
const PART_WEIGHT = 0.1;
const OUTLINE_CHARACTERS = 4_000;
const TITLE_CHARACTERS = 1_024;

/** The root first: it stands for the whole, with the title, how the text begins, and its headings. */
function partsOf(title: string, parsed: ParseResult): Part[] {
  const first = parsed.chunks[0]!;
  const gist = gistOf(first.content, title);
  const outline = parsed.outline.map(({ level, text }) => `${'  '.repeat(level - 1)}- ${text}`).join('\n');
  const content = [title, gist, outline].filter(Boolean).join('\n\n').slice(0, OUTLINE_CHARACTERS).toWellFormed();
  const whole = { startOffset: 0, endOffset: parsed.characters, pageFrom: null, pageTo: null, headingPath: [] };
  return [
    { ...whole, index: ROOT_INDEX, tokens: 0, title, content: content || '…', gist },
    ...parsed.chunks.map((chunk, index) => ({
      ...chunk,
      index,
      title: [...new Set([title, ...chunk.headingPath])]
        .filter(Boolean)
        .join(' › ')
        .slice(0, TITLE_CHARACTERS)
        .toWellFormed(),
      gist: '',
    })),
  ];
}

/**
 * Parts that the document has already, by their index: same title and same text, whatever is said of the whole. They keep their
 * memories, with vectors, links and what recall made of them.
 */
function keepEqualParts(store: Store, { document }: Reading, parts: readonly Part[]): Map<number, number> {
  const kept = new Map<number, number>();
  if (document.live_no === null) return kept;
  const known = new Map<string, number[]>();
  for (const { memory, index, title, content } of readChunkTexts(store, document.live_no)) {
    const key = keyOf(index, title, content);
    known.set(key, [...(known.get(key) ?? []), memory]);
  }
  for (const part of parts) {
    const memory = known.get(keyOf(part.index, part.title, part.content))?.shift();
    if (memory !== undefined) kept.set(part.index, memory);
  }
  return kept;
}

function keyOf(index: number, title: string, content: string): string {
  const kind = index === ROOT_INDEX ? 'root' : 'chunk';
  return createHash('sha256').update(`${kind}\n${title}\n`).update(content).digest('base64');
}

function insertPart(context: StepContext, store: Store, reading: Reading, part: Part): number {
  const { document, generation, trace } = reading;
  const { newId, config, clock } = context;
  const now = clock.now();
  const memory = {
    content: part.content,
    userId: document.user_id,
    sessionId: generation.session_id,
    tags: JSON.parse(generation.tags) as string[],
    files: [],
    metadata: JSON.parse(generation.metadata) as Metadata,
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
  const seq = insertMemory(store, { id: newId(), userNo, memory, contentHash: contentHash(part.content), now });
  insertDynamics(store, {
    seq,
    salience: initialSalience(null, 0),
    decayLambda: decayLambdaOf('semantic', config.OM_DECAY_LAMBDA),
    generationNo: generation.generation_no,
    now,
  });
  putText(store, { ...part, seq, entities: [], tags: memory.tags, context: '' });
  // A run of blanks may fill a chunk, since chunks cover the whole text: there is nothing to embed in it.
  if (part.content.trim() === '') setState(store, seq, 'ready');
  else {
    const job = { id: newId(), memory: seq, document: document.document_no, step: 'encode', bulk: true } as const;
    insertJob(store, { ...job, trace, now });
  }
  return seq;
}

function receiptOf(
  store: Store,
  { live_no: live }: DocumentRow,
  parts: readonly Part[],
  kept: ReadonlyMap<number, number>,
): DocumentReceipt {
  const chunksKept = [...kept.keys()].filter((index) => index !== ROOT_INDEX).length;
  const before = live === null ? 0 : countChunks(store, live);
  return { stored: parts.length - 1 - chunksKept, kept: chunksKept, removed: before - chunksKept };
}
