import { addReceipts } from '../commands/erase.ts';
import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { getDocumentRow, type DocumentRow } from '../store/documents.ts';
import { getDocument, listDocuments } from '../store/document-views.ts';
import { listDocumentChunks } from '../store/provenance.ts';
import { readDocumentText } from '../store/chunks.ts';
import type { Erasure } from './tenant-erasure.ts';
import type { TenantOptions } from './tenant-options.ts';

type DocumentMethods = Pick<
  Tenant,
  'getDocument' | 'listDocuments' | 'documentContent' | 'listDocumentChunks' | 'deleteDocument' | 'cancelDocument'
>;

/** Makes the methods by which a tenant shows and erases its documents, and cancels their reading. */
export function createDocumentMethods(
  { path, clock, writer, open }: TenantOptions,
  { eraseAbandoned, writeDelete }: Erasure,
): DocumentMethods {
  const store = () => open().store;
  const rowOf = (id: string): DocumentRow => getDocumentRow(store(), id, clock.now());

  return {
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
      // What other hidden documents leave is erased too, but the receipt counts only this document.
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
  };
}

/** Makes an asynchronous iteration of pieces that are read without waiting, which another store may not be able to. */
async function* piecesOf(pieces: Iterable<string>): AsyncIterable<string> {
  yield* pieces;
}

function liveGenerationOf({ live_no: live, state }: DocumentRow): number {
  if (live !== null) return live;
  throw new EngineError('conflict', `a document that is ${state} has no content`);
}
