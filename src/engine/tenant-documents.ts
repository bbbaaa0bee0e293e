import { createUploadFile, removeUpload } from './documents/uploads.ts';
import type { DocumentReply, Tenant } from './engine.ts';
import { EngineError } from './errors.ts';
import { addReceipts, EMPTY_RECEIPT } from './ingest/erase.ts';
import {
  findDocument,
  getDocumentRow,
  listDocumentChunks,
  listDocuments,
  readDocumentText,
  waitingBytes,
  type DocumentRow,
} from './store/documents.ts';
import type { DeleteReceipt, NewDocument } from './types.ts';
import type { TenantOptions } from './tenant.ts';

type DocumentMethods = Pick<
  Tenant,
  | 'createUpload'
  | 'addDocument'
  | 'replaceDocument'
  | 'getDocument'
  | 'listDocuments'
  | 'documentContent'
  | 'listDocumentChunks'
  | 'deleteDocument'
  | 'cancelDocument'
>;

/** Memories erased in one write, so that others come through between. */
const ERASE_SLICE = 100;

/** What a tenant does about documents: it takes them in, shows them and erases them. Workers read them. */
export function createDocumentMethods({ path, config, writer, dispatcher, open }: TenantOptions): DocumentMethods & {
  /** Erases what is left of documents that nobody sees any more. */
  eraseAbandoned(): Promise<DeleteReceipt>;
} {
  const store = () => open().store;

  return {
    createUpload() {
      if (waitingBytes(store()) >= config.OM_UPLOADS_MAX_MB * 1024 * 1024) {
        throw new EngineError('unavailable', 'documents that wait to be read fill OM_UPLOADS_MAX_MB', {
          retryAfterMs: 5_000,
        });
      }
      return createUploadFile(path);
    },
    addDocument: (document) => handIn(document, () => writer.write(path, 'addDocument', { document })),
    replaceDocument: (id, document) => handIn(document, () => writer.write(path, 'replaceDocument', { id, document })),
    getDocument(id) {
      const document = store().read(() => findDocument(store(), id));
      if (document === undefined) throw new EngineError('not_found', 'no document with this id');
      return document;
    },
    listDocuments: (filter, page) => store().read(() => listDocuments(store(), filter, page)),
    documentContent(id) {
      const generationNo = liveGenerationOf(getDocumentRow(store(), id));
      return readDocumentText(store, generationNo);
    },
    listDocumentChunks(id, page) {
      const { live_no: live } = getDocumentRow(store(), id);
      return live === null ? [] : listDocumentChunks(store(), live, page);
    },
    async deleteDocument(id) {
      const hidden = await writer.write(path, 'deleteDocument', { id });
      return addReceipts(hidden, await eraseAbandoned());
    },
    async cancelDocument(id) {
      const document = await writer.write(path, 'cancelDocument', { id });
      await eraseAbandoned();
      return document;
    },
    eraseAbandoned,
  };

  /** Whatever becomes of it, the file is removed unless a generation owns it now. */
  async function handIn(document: NewDocument, write: () => Promise<DocumentReply>): Promise<DocumentReply> {
    let isOwned = false;
    try {
      const reply = await write();
      isOwned = reply.outcome !== 'unchanged';
      if (isOwned) dispatcher.dispatch(path, 'ingest');
      return reply;
    } finally {
      if (!isOwned && document.source.kind === 'upload') removeUpload(path, document.source.name);
    }
  }

  async function eraseAbandoned(): Promise<DeleteReceipt> {
    for (let receipt = EMPTY_RECEIPT; ;) {
      const slice = await writer.write(path, 'eraseAbandoned', { limit: ERASE_SLICE });
      receipt = addReceipts(receipt, slice.receipt);
      if (!slice.isDone) continue;
      dispatcher.dispatch(path, 'link');
      return receipt;
    }
  }
}

function liveGenerationOf({ live_no: live, state }: DocumentRow): number {
  if (live !== null) return live;
  throw new EngineError('conflict', `a document that is ${state} has no content`);
}
