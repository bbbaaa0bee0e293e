import { EngineError } from '../errors.ts';
import { ROOT_INDEX } from '../store/chunks.ts';
import { getDocumentRow } from '../store/documents.ts';
import { type ChunkListPlace, type ChunkSlice, readChunkSlice } from '../store/provenance.ts';
import type { Page } from '../types.ts';
import type { ReadContext } from './read-context.ts';

/**
 * Reads the next slice of a document's chunks, in the order of its text; none until its first reading is complete.
 * @param asked.place what the previous slice returned as `next`; null for the first slice
 * @throws EngineError `not_found`; `conflict` if the document was replaced since the slice before
 */
export function readChunks(
  { open, clock }: ReadContext,
  { id, place, page }: { readonly id: string; readonly place: ChunkListPlace | null; readonly page: Page },
): ChunkSlice {
  const { store } = open();
  return store.read(() => {
    const { live_no: live } = getDocumentRow(store, id, clock.now());
    if (place !== null && place.generationNo !== live)
      throw new EngineError('conflict', 'the document was replaced while its chunks were listed');
    return live === null
      ? { items: [], next: null }
      : readChunkSlice(store, place ?? { generationNo: live, after: ROOT_INDEX }, page);
  });
}
