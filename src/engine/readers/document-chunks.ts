import { EngineError } from '../errors.ts';
import { goneMeanwhile, readTextSlice, ROOT_INDEX, TEXT_START, type TextPlace } from '../store/chunks.ts';
import { getGenerationRow } from '../store/document-generations.ts';
import { getDocumentRow } from '../store/documents.ts';
import type { Store } from '../store/open-store.ts';
import { type ChunkListPlace, type ChunkSlice, readChunkSlice } from '../store/provenance.ts';
import type { BoundOptions, Page } from '../types.ts';
import type { ReadContext } from './read-context.ts';

/**
 * What a caller asks of a document: its id and the position that the previous slice returned as `next`, null for the
 * first slice. If the caller's key is bound to tags, each chunk that is read must have them (`withinTags`), since a
 * chunk may have been given other tags than its document.
 */
interface Asked<Place> extends BoundOptions {
  readonly id: string;
  readonly place: Place | null;
}

/**
 * Reads the next slice of a document's chunks, in the order of its text; none until its first reading is complete.
 * @throws EngineError `not_found`, also for a chunk outside of the bounds; `conflict` if the document was replaced
 *   since the slice before
 */
export function readChunks(
  { open, clock }: ReadContext,
  { id, place, ...wanted }: Asked<ChunkListPlace> & Page,
): ChunkSlice {
  const { store } = open();
  return store.read(() => {
    const { live_no: live } = getDocumentRow(store, id, clock.now());
    if (place !== null && place.generationNo !== live)
      throw new EngineError('conflict', 'the document was replaced while its chunks were listed');
    return live === null
      ? { items: [], next: null }
      : readChunkSlice(store, place ?? { generationNo: live, after: ROOT_INDEX }, wanted);
  });
}

/** Position in the text of a document between two slices. */
export interface ContentPlace {
  /** Generation (parsed version) of the document that is read, and the number of its chunks. */
  readonly generationNo: number;
  readonly chunks: number;
  readonly text: TextPlace;
}

/** A slice of the text of a document, and the position after it; null at the end of the text. */
export interface ContentSlice {
  readonly pieces: readonly string[];
  readonly next: ContentPlace | null;
}

/**
 * Reads the next slice of a document's text, as `readTextSlice` bounds it. Slices after the first one go on with the
 * generation of that one, as long as its chunks are there, even if a newer one is shown meanwhile.
 * @throws EngineError `not_found` for a chunk outside of the bounds; for the first slice also if there is no such
 *   document, and `conflict` if no reading of it is complete yet; for a later slice `conflict` if the chunks are gone,
 *   since the document was replaced or deleted
 */
export function readContent(
  { open, clock }: ReadContext,
  { id, place, withinTags }: Asked<ContentPlace>,
): ContentSlice {
  const { store } = open();
  return store.read(() => {
    const { generationNo, chunks, text } = place ?? beginning(store, id, clock.now());
    const { pieces, place: end } = readTextSlice(store, generationNo, text, withinTags);
    const isWhole = end.after + 1 >= chunks;
    if (pieces.length === 0 && !isWhole) throw goneMeanwhile();
    return { pieces, next: isWhole ? null : { generationNo, chunks, text: end } };
  });
}

function beginning(store: Store, id: string, now: number): ContentPlace {
  const { live_no: generationNo, state } = getDocumentRow(store, id, now);
  if (generationNo === null) throw new EngineError('conflict', `a document that is ${state} has no content`);
  return { generationNo, chunks: getGenerationRow(store, generationNo).chunks, text: TEXT_START };
}
