import { addReceipts, EMPTY_RECEIPT } from '../commands/erase.ts';
import { createUploadFile, removeUpload, requireRoomToTakeIn } from '../documents/uploads.ts';
import type { Tenant } from '../engine.ts';
import { EngineError, isEngineError } from '../errors.ts';
import {
  getDocument,
  getDocumentRow,
  listDocumentChunks,
  listDocuments,
  listUploadsOf,
  readDocumentText,
  waitingBytes,
  type DocumentRow,
} from '../store/documents.ts';
import type { DocumentReply, DeleteReceipt, NewDocument } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

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
export function createDocumentMethods({
  path,
  config,
  clock,
  writer,
  dispatcher,
  open,
}: TenantOptions): DocumentMethods & {
  /** Erases what is left of documents that nobody sees any more. */
  eraseAbandoned(): Promise<DeleteReceipt>;
  /** Writes a delete, whatever the disk: `documents` are those it is about. */
  writeDelete<Reply>(write: () => Promise<Reply>, documents: () => readonly number[]): Promise<Reply>;
} {
  const store = () => open().store;
  /** The most that files on their way will have, by their names: the next one has to find room beside them. */
  const arriving = new Map<string, number>();

  return {
    async createUpload(bytes) {
      const taken = waitingBytes(store()) + [...arriving.values()].reduce((sum, most) => sum + most, 0);
      // A file that is larger than the bound is taken in alone.
      if (taken > 0 && taken + bytes > config.OM_UPLOADS_MAX_MB * 1024 * 1024) {
        throw new EngineError('unavailable', 'documents that wait to be read fill OM_UPLOADS_MAX_MB', {
          retryAfterMs: 5_000,
        });
      }
      requireRoomToTakeIn(path, bytes);
      const file = createUploadFile(path);
      arriving.set(file.name, bytes);
      return { ...file, discard: () => discard(file.name) };
    },
    addDocument: (document) => handIn(document, () => writer.write(path, 'addDocument', { document })),
    replaceDocument: (id, document) => handIn(document, () => writer.write(path, 'replaceDocument', { id, document })),
    getDocument: async (id) => store().read(() => getDocument(store(), id, clock.now())),
    listDocuments: async (filter, page) =>
      store().read(() => listDocuments(store(), filter, { ...page, now: clock.now() })),
    async documentContent(id) {
      const generationNo = liveGenerationOf(rowOf(id));
      return piecesOf(readDocumentText(store, generationNo));
    },
    async listDocumentChunks(id, page) {
      const { live_no: live } = rowOf(id);
      return live === null ? [] : listDocumentChunks(store(), live, page);
    },
    async deleteDocument(id) {
      const hidden = await writeDelete(
        () => writer.write(path, 'deleteDocument', { id }),
        () => [rowOf(id).document_no],
      );
      // What other documents left is not what was asked for, and no part of the receipt.
      return addReceipts(hidden, await eraseAbandoned(id));
    },
    async cancelDocument(id) {
      const document = await writeDelete(
        () => writer.write(path, 'cancelDocument', { id }),
        () => [rowOf(id).document_no],
      );
      await eraseAbandoned();
      return document;
    },
    eraseAbandoned,
    writeDelete,
  };

  function rowOf(id: string): DocumentRow {
    return getDocumentRow(store(), id, clock.now());
  }

  /** Whatever becomes of it, the file is removed unless a generation owns it now. */
  async function handIn(document: NewDocument, write: () => Promise<DocumentReply>): Promise<DocumentReply> {
    let isOwned = false;
    try {
      const reply = await write();
      isOwned = reply.outcome !== 'unchanged';
      if (isOwned) dispatcher.dispatch(path, 'ingest');
      return reply;
    } finally {
      const { source } = document;
      if (source.kind === 'upload' && isOwned) arriving.delete(source.name);
      else if (source.kind === 'upload') discard(source.name);
    }
  }

  function discard(name: string): void {
    removeUpload(path, name);
    arriving.delete(name);
  }

  /**
   * A full disk takes no delete either, but the files of what is to go need no commit to be removed, and make room for one. Where even
   * that is not enough, the documents are still there and have lost their files.
   */
  async function writeDelete<Reply>(write: () => Promise<Reply>, documents: () => readonly number[]): Promise<Reply> {
    try {
      return await write();
    } catch (error) {
      if (!isEngineError(error, 'storage_full')) throw error;
      for (const upload of listUploadsOf(store(), documents())) removeUpload(path, upload);
      return write();
    }
  }

  async function eraseAbandoned(documentId: string | null = null): Promise<DeleteReceipt> {
    for (let receipt = EMPTY_RECEIPT; ;) {
      const slice = await writeDelete(
        () => writer.write(path, 'eraseAbandoned', { limit: ERASE_SLICE, documentId }),
        () => [], // It has removed them itself by then.
      );
      receipt = addReceipts(receipt, slice.receipt);
      if (!slice.isDone) continue;
      dispatcher.dispatch(path, 'link');
      return receipt;
    }
  }
}

/** A text's pieces as they will come once another thread or database reads them. */
async function* piecesOf(pieces: Iterable<string>): AsyncIterable<string> {
  yield* pieces;
}

function liveGenerationOf({ live_no: live, state }: DocumentRow): number {
  if (live !== null) return live;
  throw new EngineError('conflict', `a document that is ${state} has no content`);
}
