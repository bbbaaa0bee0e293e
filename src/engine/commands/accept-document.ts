import { isUploadThere } from '../documents/uploads.ts';
import { EngineError } from '../errors.ts';
import { getGenerationRow, insertGeneration } from '../store/document-generations.ts';
import {
  asOf,
  findDocumentRow,
  findKnownDocument,
  insertDocument,
  setExternalId,
  type DocumentRow,
} from '../store/documents.ts';
import { toDocument } from '../store/document-views.ts';
import { cancelDocumentJobs, findOpenDocumentJob } from '../store/document-jobs.ts';
import { insertJob } from '../store/jobs.ts';
import type { Store } from '../store/open-store.ts';
import { ensureStoreId } from '../store/store-info.ts';
import { storedExpiry } from '../store/stored-expiry.ts';
import { ensureWriter, findWriter } from '../store/writers.ts';
import type { AddDocumentOptions, BoundOptions, DocumentReply, Document, NewDocument } from '../types.ts';
import { refuseOverBacklog, requireTags } from './accept.ts';
import { dropReading } from './drop-reading.ts';
import { encodeReceipt } from './write-receipt.ts';
import { refuseLongAddress } from './refuse-long-address.ts';
import { refuseDocumentOverQuota, type Quota } from './quota.ts';
import { getBoundDocument, versionTags } from './within-bounds.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Records a document and the ledger job by which a worker reads it, in the writer's transaction. The file of an upload
 * is on disk already; the worker fetches the page of a URL. A file that is already known by its external id or bytes is
 * read again only if it or a stated field changed, or its latest reading failed (`isUnchanged`), so that a client may
 * send it twice. A known page is fetched again, unless a fetch of it with the same fields is still to come.
 * @throws EngineError `invalid` for a new page whose URL and user are too long together (`refuseLongAddress`);
 *   `unavailable` over `OM_MAX_BACKLOG` and if the file is gone; what `refuseDocumentOverQuota` throws; `conflict` for
 *   a known document of which a version lacks a tag of `withinTags` (`versionTags`) or, with `onlyNew`, which would be
 *   read again or is another key's
 */
export function addDocument(
  context: WriteContext,
  {
    document,
    withinTags = [],
    onlyNew = false,
    quota = null,
  }: AddDocumentOptions & { readonly document: NewDocument; readonly quota?: Quota | null },
): DocumentReply {
  const { store, now } = context;
  // A key that only adds learns nothing of the documents of others: their bytes are new to it.
  const onlyBy = onlyNew ? (findWriter(store, context.writtenBy ?? '') ?? null) : undefined;
  const existing = findKnownDocument(store, document, now, onlyBy);
  if (existing !== undefined && onlyNew && toDocument(store, existing).writtenBy !== context.writtenBy)
    throw new EngineError('conflict', 'another key has stored a document with this external_id or url already');
  if (existing !== undefined && withinTags.length > 0)
    for (const tags of versionTags(store, existing)) requireTags(tags, withinTags);
  if (existing !== undefined && isUnchanged(store, existing, document)) return leave(context, existing);
  if (existing !== undefined && onlyNew)
    throw new EngineError(
      'conflict',
      'this document is stored already with other content, which your key cannot change',
    );
  if (existing === undefined) refuseLongAddress({ ...document, url: urlOf(document) });
  refuseDocumentOverQuota(context, quota, countAdded(store, existing));
  if (existing !== undefined) return readAgain(context, existing, document);
  refuseOverBacklog(context, 1);
  const row = insertDocument(store, { id: context.newId(), document, now });
  return begin(context, row, { document, always: false, outcome: 'accepted' });
}

/**
 * Makes a worker read a document again, even if nothing about it seems to have changed: the settings may have changed.
 * The document keeps its user, and its external id unless `document` names another. So a file that was renamed keeps
 * its memories.
 * @throws EngineError `not_found`; `conflict` for an external id of another document of the user; `invalid` as for
 *   `addDocument`; `unavailable` over `OM_MAX_BACKLOG` and if the file is gone; what `refuseDocumentOverQuota` throws
 */
export function replaceDocument(
  context: WriteContext,
  {
    id,
    document,
    withinTags,
    quota = null,
  }: BoundOptions & { readonly id: string; readonly document: NewDocument; readonly quota?: Quota | null },
): DocumentReply {
  const { store, now } = context;
  const row = getBoundDocument(context, id, withinTags);
  refuseDocumentOverQuota(context, quota, countAdded(store, row));
  const own = row.external_id === '' ? null : row.external_id;
  const replacement = { ...document, externalId: document.externalId ?? own, userId: row.user_id };
  if (urlOf(document) !== row.url) refuseLongAddress({ ...replacement, url: urlOf(replacement) });
  if (replacement.externalId !== null && replacement.externalId !== own) {
    if (findKnownDocument(store, replacement, now) !== undefined)
      throw new EngineError('conflict', 'another document of this user has this external_id');
    setExternalId(store, row.document_no, replacement.externalId);
  }
  return readAgain(context, row, replacement, { always: true });
}

function urlOf({ source }: NewDocument): string {
  return source.kind === 'url' ? source.url : '';
}

/**
 * Returns the number of memories that a document counts as when it is accepted. Its chunks are added later, and only
 * the worker knows their number, so a document counts as one; as none if it has memories already, which it replaces, or
 * if it waits already.
 * @param row the document as it is stored; undefined for a new one
 */
function countAdded(store: Store, row: DocumentRow | undefined): 0 | 1 {
  if (row === undefined) return 1;
  return row.live_no !== null || findOpenDocumentJob(store, row.document_no) !== undefined ? 0 : 1;
}

function leave({ store }: WriteContext, row: DocumentRow): DocumentReply {
  const job = findOpenDocumentJob(store, row.document_no);
  return {
    document: toDocument(store, row),
    outcome: 'unchanged',
    jobId: job?.id ?? null,
    token: job === undefined ? null : receiptOf(store, job.jobNo),
  };
}

function readAgain(
  context: WriteContext,
  row: DocumentRow,
  document: NewDocument,
  { always } = { always: false },
): DocumentReply {
  refuseOverBacklog(context, 1);
  cancelDocumentJobs(context.store, row.document_no, { which: 'reading', now: context.now });
  return begin(context, row, { document, always, outcome: row.live_no === null ? 'accepted' : 'replaced' });
}

function begin(
  context: WriteContext,
  row: DocumentRow,
  {
    document,
    always,
    outcome,
  }: { readonly document: NewDocument; readonly always: boolean; readonly outcome: 'accepted' | 'replaced' },
): DocumentReply {
  const { store, now, trace } = context;
  refuseGone(store, document);
  const writerNo = ensureWriter(store, context.writtenBy);
  insertGeneration(store, { documentNo: row.document_no, document, always, writerNo, now });
  const jobId = context.newId();
  const jobNo = insertJob(store, { id: jobId, document: row.document_no, step: 'ingest', bulk: false, trace, now });
  const begun = asOf(store, findDocumentRow(store, row.document_no)!, now);
  return { document: toDocument(store, begun), outcome, jobId, token: receiptOf(store, jobNo) };
}

/** Refuses a document whose file the upkeep took for one left behind, as after a sleep of the machine. */
function refuseGone(store: Store, { source }: NewDocument): void {
  if (source.kind === 'url' || isUploadThere(store, source.name)) return;
  throw new EngineError('unavailable', 'the file of the document is gone: send it again', { retryAfterMs: 1_000 });
}

/**
 * Makes the write receipt of a document. The receipt names the document's job alone, since this job ends only when the
 * last job of its chunks has ended.
 */
function receiptOf(store: Store, jobNo: number): string {
  return encodeReceipt({ storeId: ensureStoreId(store), first: jobNo, last: jobNo });
}

/**
 * Whether a document need not be read again. Its latest reading alone is compared: the answer is false if that one
 * failed, even if an earlier reading had the same file. The file (bytes, name, declared format and character set) and
 * all fields that the caller stated must be equal, so the same bytes with another file name or another declared format
 * count as changed, as does a file that waits to be read and is gone. So does a file whose document came with an import
 * that lacks some of its parts: no query finds the document, and nothing else would read it. A web page may have
 * changed in any case, so it is fetched again unless a fetch of it is still to come.
 */
function isUnchanged(store: Store, row: DocumentRow, document: NewDocument): boolean {
  const generationNo = row.next_no ?? row.live_no;
  if (generationNo === null || (row.error_code !== null && row.state !== 'empty')) return false;
  const generation = getGenerationRow(store, generationNo);
  if (row.next_no === null && generation.hidden > 0) return false;
  const { source } = document;
  const isSameFile =
    source.kind === 'url'
      ? row.next_no !== null && generation.url === source.url
      : generation.source === 'upload' &&
        generation.file_hash?.equals(source.sha256) === true &&
        generation.file_name === source.fileName &&
        generation.declared === source.declared &&
        generation.charset === source.charset &&
        (row.next_no === null || generation.upload === '' || isUploadThere(store, generation.upload));
  return (
    isSameFile &&
    generation.session_id === document.sessionId &&
    generation.given_title === document.title &&
    generation.type === document.type &&
    generation.tags === JSON.stringify(document.tags) &&
    generation.metadata === JSON.stringify(document.metadata) &&
    generation.event_time === document.eventTime &&
    generation.expires_at === storedExpiry(document.expiresAt)
  );
}

/**
 * Stops the reading of a document that waits, is running or has failed. If queries find an earlier reading, its text
 * stays.
 * @throws EngineError `not_found`; `conflict` if the document has no such reading
 */
export function cancelDocument(
  context: WriteContext,
  { id, withinTags }: BoundOptions & { readonly id: string },
): Document {
  const { store } = context;
  const row = getBoundDocument(context, id, withinTags);
  if (row.next_no === null) {
    throw new EngineError('conflict', `a document that is ${row.state} is not being read; delete it to be rid of it`);
  }
  dropReading(context, row.document_no, row.live_no === null ? 'cancelled' : 'ready');
  return toDocument(store, findDocumentRow(store, row.document_no)!);
}
