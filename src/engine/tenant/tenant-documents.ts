import { addReceipts } from '../commands/erase.ts';
import type { Tenant } from '../engine.ts';
import { isEngineError } from '../errors.ts';
import type { ContentPlace, ContentSlice } from '../readers/document-chunks.ts';
import type { ChunkListPlace, ChunkSlice } from '../store/provenance.ts';
import type { BoundOptions, Document, DocumentChunk, DocumentFilter, Page } from '../types.ts';
import type { Erasure } from './tenant-erasure.ts';
import { withReceipt } from './tenant-erasures.ts';
import type { TenantOptions } from './tenant-options.ts';

/**
 * Greatest number of documents that one read returns, so that a long list yields its thread to other reads. One
 * document takes about 50 µs, and some milliseconds if it has thousands of chunks, which are counted by their state.
 */
const SLICE_DOCUMENTS = 16;

type DocumentMethods = Pick<
  Tenant,
  | 'getDocument'
  | 'listDocuments'
  | 'streamDocuments'
  | 'documentContent'
  | 'streamDocumentChunks'
  | 'documentReceipt'
  | 'deleteDocument'
  | 'cancelDocument'
>;

/** Makes the methods by which a tenant returns and erases its documents, and cancels their reading. */
export function createDocumentMethods({ path, readers, writer }: TenantOptions, erasure: Erasure): DocumentMethods {
  const { eraseAbandoned, writeDelete } = erasure;
  const documentNoOf = (id: string) => readers.readFew(path, 'documentNoOf', { id });

  return {
    getDocument: (id) => readers.read(path, 'readDocument', { id }),
    async listDocuments(filter, page) {
      const items: Document[] = [];
      const { slices, total } = await streamDocuments(filter, page);
      for await (const slice of slices) items.push(...slice);
      return { items, total };
    },
    streamDocuments,
    async documentContent(id, { withinTags } = {}) {
      const readSlice = (place: ContentPlace | null) => readers.read(path, 'readContent', { id, place, withinTags });
      // The first slice is read at once, since this call itself tells that a document has no content.
      return piecesOf(await readSlice(null), readSlice);
    },
    streamDocumentChunks,
    documentReceipt: (id, page) => readers.read(path, 'documentReceipt', { id, page }),
    deleteDocument: createDeleteDocument({ path, readers, writer }, erasure),
    async cancelDocument(id, bounds) {
      const document = await writeDelete(
        () => writer.write(path, 'cancelDocument', { id, ...bounds }),
        async () => [await documentNoOf(id)],
      );
      await eraseAbandoned();
      return document;
    },
  };

  async function streamDocuments(filter: DocumentFilter, page: Page) {
    const { documentNos, total } = await readers.read(path, 'listDocuments', { filter, page });
    return { slices: slicesOf(documentNos), listed: documentNos.length, total };
  }

  async function* slicesOf(documentNos: readonly number[]): AsyncGenerator<readonly Document[]> {
    for (let left = documentNos; left.length > 0;) {
      const wanted = left.slice(0, SLICE_DOCUMENTS);
      const { items, rest } = await readers.read(path, 'readDocuments', { documentNos: wanted });
      yield items;
      left = left.slice(wanted.length - rest.length);
    }
  }

  async function* streamDocumentChunks(
    id: string,
    { limit, offset, withinTags }: Page & BoundOptions,
  ): AsyncGenerator<readonly DocumentChunk[]> {
    let left = limit;
    let place: ChunkListPlace | null = null;
    do {
      const page: Page & BoundOptions = { limit: left, offset: place === null ? offset : 0, withinTags };
      const { items, next }: ChunkSlice = await readers.read(path, 'readChunks', { id, place, ...page });
      yield items;
      left -= items.length;
      place = next;
    } while (place !== null && left > 0);
  }
}

/** Makes the method that erases a document, also one that a delete which broke off has hidden. */
function createDeleteDocument(
  { path, readers, writer }: Pick<TenantOptions, 'path' | 'readers' | 'writer'>,
  { eraseAbandoned, writeDelete, waitForOthers }: Erasure,
): Tenant['deleteDocument'] {
  return async (id, options) => {
    const documentNo = await readers.read(path, 'findErasableDocument', { id, ...options });
    await waitForOthers([documentNo]);
    return withReceipt({ path, writer }, { kind: 'document' }, async (erasure) => {
      const hide = () =>
        writeDelete(
          () => writer.write(path, 'deleteDocument', { id, ...options, erasure }),
          async () => [documentNo],
        );
      const hidden = await hide().catch(async (error: unknown) => {
        if (!isEngineError(error, 'unavailable') || error.mayBeWritten) throw error;
        // Another delete came first since the look.
        await waitForOthers([documentNo]);
        return hide();
      });
      const erased = await eraseAbandoned(erasure);
      // After a long pause another delete may have taken the document over.
      await waitForOthers([documentNo]);
      return addReceipts(hidden, erased);
    });
  };
}

/** Yields the texts of a first slice of a document, and of those that follow it, which it reads one by one. */
async function* piecesOf(
  first: ContentSlice,
  readSlice: (place: ContentPlace) => Promise<ContentSlice>,
): AsyncGenerator<string> {
  let { pieces, next } = first;
  yield* pieces;
  while (next !== null) {
    ({ pieces, next } = await readSlice(next));
    yield* pieces;
  }
}
