import { addReceipts } from '../commands/erase.ts';
import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { getDocumentRow, type DocumentRow } from '../store/documents.ts';
import { getDocument, readDocuments } from '../store/document-views.ts';
import { listDocumentChunks } from '../store/provenance.ts';
import { readDocumentText } from '../store/chunks.ts';
import type { Document, DocumentFilter, Page } from '../types.ts';
import type { Erasure } from './tenant-erasure.ts';
import { withReceipt } from './tenant-erasures.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Documents that are read at once: one takes about 50 µs, and more if its metadata is large. */
const SLICE_DOCUMENTS = 16;

type DocumentMethods = Pick<
  Tenant,
  | 'getDocument'
  | 'listDocuments'
  | 'streamDocuments'
  | 'documentContent'
  | 'listDocumentChunks'
  | 'documentReceipt'
  | 'deleteDocument'
  | 'cancelDocument'
>;

/** Makes the methods by which a tenant shows and erases its documents, and cancels their reading. */
export function createDocumentMethods(
  { path, clock, readers, writer, open }: TenantOptions,
  { eraseAbandoned, writeDelete }: Erasure,
): DocumentMethods {
  const store = () => open().store;
  const rowOf = (id: string): DocumentRow => getDocumentRow(store(), id, clock.now());

  return {
    getDocument: async (id) => store().read(() => getDocument(store(), id, clock.now())),
    async listDocuments(filter, page) {
      const items: Document[] = [];
      const { slices, total } = await streamDocuments(filter, page);
      for await (const slice of slices) items.push(...slice);
      return { items, total };
    },
    streamDocuments,
    async documentContent(id) {
      const generationNo = liveGenerationOf(rowOf(id));
      return piecesOf(readDocumentText(store, generationNo));
    },
    async listDocumentChunks(id, page) {
      const { live_no: live } = rowOf(id);
      return live === null ? [] : listDocumentChunks(store(), live, page);
    },
    documentReceipt: (id, page) => readers.read(path, 'documentReceipt', { id, page }),
    async deleteDocument(id) {
      const { title, fileName, url } = getDocument(store(), id, clock.now());
      const names = [title, fileName, url].filter((name) => name !== null);
      return withReceipt({ path, writer }, { kind: 'document', names }, async (erasure) => {
        const hidden = await writeDelete(
          () => writer.write(path, 'deleteDocument', { id }),
          () => [rowOf(id).document_no],
        );
        // What other hidden documents leave is erased too, but the receipt counts only this document.
        return addReceipts(hidden, await eraseAbandoned(id, erasure));
      });
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

  async function streamDocuments(filter: DocumentFilter, page: Page) {
    const { documentNos, total } = await readers.read(path, 'listDocuments', { filter, page });
    return { slices: slicesOf(documentNos), total };
  }

  async function* slicesOf(documentNos: readonly number[]): AsyncGenerator<readonly Document[]> {
    for (let at = 0; at < documentNos.length; at += SLICE_DOCUMENTS) {
      yield store().read(() => readDocuments(store(), documentNos.slice(at, at + SLICE_DOCUMENTS)));
    }
  }
}

/** Makes an asynchronous iteration of pieces that are read without waiting, which another store may not be able to. */
async function* piecesOf(pieces: Iterable<string>): AsyncIterable<string> {
  yield* pieces;
}

function liveGenerationOf({ live_no: live, state }: DocumentRow): number {
  if (live !== null) return live;
  throw new EngineError('conflict', `a document that is ${state} has no content`);
}
