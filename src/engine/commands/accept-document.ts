import { EngineError } from '../errors.ts';
import {
  dropNextGeneration,
  findDocumentRow,
  findKnownDocument,
  getDocumentRow,
  getGenerationRow,
  insertDocument,
  insertGeneration,
  setDocumentState,
  toDocument,
  type DocumentRow,
} from '../store/documents.ts';
import { cancelDocumentJobs, findOpenDocumentJob, insertJob } from '../store/jobs.ts';
import type { Store } from '../store/open-store.ts';
import { ensureStoreId } from '../store/store-info.ts';
import type { DocumentReply, Document, NewDocument } from '../types.ts';
import { refuseOverBacklog } from './accept.ts';
import { encodeToken } from './token.ts';
import type { WriteContext } from './write-context.ts';

/**
 * Puts a document into the ledger, in the writer's transaction. Its file is on disk already; it is read by a worker. What is known by
 * its external id, URL or bytes is read again if it changed, and left alone if not, so that a client may repeat itself.
 */
export function addDocument(context: WriteContext, { document }: { readonly document: NewDocument }): DocumentReply {
  const { store, now } = context;
  const known = findKnownDocument(store, document, now);
  if (known !== undefined)
    return isUnchanged(store, known, document) ? leave(context, known) : readAgain(context, known, document);
  refuseOverBacklog(context, 1);
  const row = insertDocument(store, { id: context.newId(), document, now });
  return begin(context, row, { document, always: false, outcome: 'accepted' });
}

/**
 * Reads a document anew, also where nothing about it seems to have changed: the settings may have.
 * @throws EngineError `not_found`; `conflict` where the external id is another document's
 */
export function replaceDocument(
  context: WriteContext,
  { id, document }: { readonly id: string; readonly document: NewDocument },
): DocumentReply {
  const row = getDocumentRow(context.store, id, context.now);
  const externalId = row.external_id === '' ? null : row.external_id;
  if (document.externalId !== null && document.externalId !== externalId)
    throw new EngineError('conflict', 'a document keeps the external_id that it was added with');
  const userId = row.user_id;
  return readAgain(context, row, { ...document, externalId, userId }, { always: true });
}

function leave({ store }: WriteContext, row: DocumentRow): DocumentReply {
  const job = findOpenDocumentJob(store, row.document_no);
  return {
    document: toDocument(store, row),
    outcome: 'unchanged',
    jobId: job?.id ?? null,
    token: job === undefined ? null : tokenOf(store, job.seq),
  };
}

function readAgain(
  context: WriteContext,
  row: DocumentRow,
  document: NewDocument,
  { always } = { always: false },
): DocumentReply {
  refuseOverBacklog(context, 1);
  cancelDocumentJobs(context.store, row.document_no, context.now);
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
  insertGeneration(store, { documentNo: row.document_no, document, always, now });
  const jobId = context.newId();
  const seq = insertJob(store, { id: jobId, document: row.document_no, step: 'ingest', bulk: false, trace, now });
  const begun = toDocument(store, findDocumentRow(store, row.document_no)!);
  return { document: begun, outcome, jobId, token: tokenOf(store, seq) };
}

/** A document's own job ends with its last chunk. */
function tokenOf(store: Store, jobSeq: number): string {
  return encodeToken({ storeId: ensureStoreId(store), first: jobSeq, last: jobSeq });
}

/**
 * A page may have changed, whatever is known of it; only one that is about to be fetched need not be asked for twice. Bytes that are
 * said to be something else are read as that.
 */
function isUnchanged(store: Store, row: DocumentRow, document: NewDocument): boolean {
  const generationNo = row.next_no ?? row.live_no;
  if (generationNo === null || (row.error_code !== null && row.state !== 'empty')) return false;
  const generation = getGenerationRow(store, generationNo);
  const { source } = document;
  const isSameFile =
    source.kind === 'url'
      ? row.next_no !== null && generation.url === source.url
      : generation.source === 'upload' &&
        generation.file_hash?.equals(source.sha256) === true &&
        generation.file_name === source.fileName &&
        generation.declared === source.declared &&
        generation.charset === source.charset;
  return (
    isSameFile &&
    generation.session_id === document.sessionId &&
    generation.given_title === document.title &&
    generation.type === document.type &&
    generation.tags === JSON.stringify(document.tags) &&
    generation.metadata === JSON.stringify(document.metadata) &&
    generation.event_time === document.eventTime &&
    generation.expires_at === (document.expiresAt && Math.max(1, document.expiresAt))
  );
}

/** @throws EngineError `not_found`; `conflict` where nothing is being read */
export function cancelDocument(context: WriteContext, { id }: { readonly id: string }): Document {
  const { store, now } = context;
  const row = getDocumentRow(store, id, now);
  if (row.next_no === null) {
    throw new EngineError('conflict', `a document that is ${row.state} is not being read; delete it to be rid of it`);
  }
  cancelDocumentJobs(store, row.document_no, now);
  dropNextGeneration(store, row.document_no);
  setDocumentState(store, row.document_no, { state: row.live_no === null ? 'cancelled' : 'ready', now });
  return toDocument(store, findDocumentRow(store, row.document_no)!);
}
