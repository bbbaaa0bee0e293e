import { EngineError } from '../errors.ts';
import { requireBounds } from './bounds.ts';
import { ABANDONED } from './documents.ts';
import type { Store } from './open-store.ts';

/** Chunk index of a document's root memory, the memory that stands for the whole document. */
export const ROOT_INDEX = -1;

/** Position of a chunk, or of the root memory, in its document. */
export interface ChunkPlace {
  /** Index of the chunk in the document, from 0; ROOT_INDEX (-1) for the root memory. */
  readonly index: number;
  /** Offset of the chunk's first character in the extracted text, in UTF-16 code units. */
  readonly startOffset: number;
  /** Offset after the chunk's last character in the extracted text, in UTF-16 code units. */
  readonly endOffset: number;
  /** Number of the chunk's first page, from 1; null if the format has no pages. */
  readonly pageFrom: number | null;
  /** Number of the chunk's last page, from 1; null if the format has no pages. */
  readonly pageTo: number | null;
  /** Headings of the sections around the chunk, outermost first; empty if there are none. */
  readonly headingPath: readonly string[];
  /** Estimated number of tokens of the chunk. */
  readonly tokens: number;
  /** Whether the chunk was kept unchanged from an earlier version of the document; false if left out. */
  readonly isKept?: boolean;
}

/**
 * Stores the position of a memory in a generation (one parsed version of a document). The memory must be inserted
 * already. Call inside a write.
 */
export function insertChunk(store: Store, generationNo: number, memoryNo: number, place: ChunkPlace): void {
  store
    .prepare(
      `INSERT INTO chunks (generation_no, chunk_index, memory, start_offset, end_offset, page_from, page_to,
         heading_path, tokens, kept)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      generationNo,
      place.index,
      memoryNo,
      place.startOffset,
      place.endOffset,
      place.pageFrom,
      place.pageTo,
      JSON.stringify(place.headingPath),
      place.tokens,
      place.isKept === true ? 1 : 0,
    );
}

/**
 * Lists the memories of a generation (one parsed version of a document) with the highest numbers, at most `limit`,
 * descending, so that a caller who erases them in this order erases the last added first. A chunk that a later
 * generation kept belongs to that generation.
 * @param except `memoryNo` of each memory that is left out
 */
export function listMemoriesOfGeneration(
  store: Store,
  generationNo: number,
  limit: number,
  except: readonly number[] = [],
): number[] {
  const isOther = except.length === 0 ? '' : 'AND seq NOT IN (SELECT value FROM json_each(?))';
  const rows = store
    .prepare(
      `SELECT seq AS memoryNo FROM memory_dynamics WHERE generation_no = ? AND generation_no > 0 ${isOther}
       ORDER BY seq DESC LIMIT ?`,
    )
    .all(generationNo, ...(except.length === 0 ? [] : [JSON.stringify(except)]), limit) as { memoryNo: number }[];
  return rows.map(({ memoryNo }) => memoryNo);
}

/**
 * SQL condition over the aliases `g` (document_generations) and `o` (documents): the generation was replaced or given
 * up, while its document stays.
 */
const IS_GIVEN_UP = `g.hidden = ${ABANDONED} AND o.state <> 'deleting'`;

/** Lists those of these memories that are no parts of documents, or of a version that was replaced or given up. */
export function listWithoutDocument(store: Store, memoryNos: readonly number[]): number[] {
  return store
    .prepare(
      `SELECT d.seq FROM json_each(?) AS wanted
         CROSS JOIN memory_dynamics d ON d.seq = wanted.value
       WHERE d.generation_no IS NULL OR EXISTS (SELECT 1 FROM document_generations g
         JOIN documents o ON o.document_no = g.document_no WHERE g.generation_no = d.generation_no AND ${IS_GIVEN_UP})`,
    )
    .pluck()
    .all(JSON.stringify(memoryNos)) as number[];
}

/**
 * Lists the numbers of the documents that have these memories as parts, each document once. Parts of a version that was
 * replaced or given up do not count.
 * @param except id of an erasure whose documents are left out; '' for none
 */
export function documentsOfMemories(store: Store, memoryNos: readonly number[], except: string): number[] {
  const rows = store
    .prepare(
      `SELECT DISTINCT g.document_no AS no FROM json_each(?) AS wanted
         CROSS JOIN memory_dynamics d ON d.seq = wanted.value
         CROSS JOIN document_generations g ON g.generation_no = d.generation_no
         CROSS JOIN documents o ON o.document_no = g.document_no WHERE (o.erasure IS NULL OR o.erasure <> ?)
           AND NOT (${IS_GIVEN_UP})`,
    )
    .all(JSON.stringify(memoryNos), except) as { no: number }[];
  return rows.map(({ no }) => no);
}

/** Counts the chunks of a generation (one parsed version of a document), without its root memory. */
export function countChunks(store: Store, generationNo: number): number {
  const row = store
    .prepare(`SELECT count(*) AS n FROM chunks WHERE generation_no = ? AND chunk_index > ${ROOT_INDEX}`)
    .get(generationNo) as { n: number };
  return row.n;
}

/** Counts the memories of a generation (one parsed version of a document), its root memory included. */
export function countParts(store: Store, generationNo: number): number {
  return store.prepare('SELECT count(*) FROM chunks WHERE generation_no = ?').pluck().get(generationNo) as number;
}

/**
 * Deletes the positions that memories have in a generation (one parsed version of a document). The memories stay. Call
 * inside a write.
 */
export function deleteChunks(store: Store, generationNo: number): void {
  store.prepare('DELETE FROM chunks WHERE generation_no = ?').run(generationNo);
}

/**
 * Lists the numbers of the memories of a generation (one parsed version of a document), including chunks that were kept
 * from an earlier generation: the root memory, then the chunks in the order of the text.
 */
export function listParts(store: Store, generationNo: number): number[] {
  const rows = store
    .prepare('SELECT memory FROM chunks WHERE generation_no = ? ORDER BY chunk_index')
    .all(generationNo) as { memory: number }[];
  return rows.map(({ memory }) => memory);
}

/** Texts of a memory that is part of a document; `metadata` is JSON. */
interface ChunkText extends Pick<ChunkPlace, 'index'> {
  readonly memoryNo: number;
  readonly title: string;
  readonly content: string;
  readonly metadata: string;
}

/**
 * Reads the memories of a generation (one parsed version of a document) one by one: the root memory (index ROOT_INDEX),
 * then the chunks in the order of the text. The connection cannot write until the iteration has ended.
 */
export function* readChunkTexts(store: Store, generationNo: number): Generator<ChunkText> {
  yield* store
    .prepare(
      `SELECT c.memory AS memoryNo, c.chunk_index AS "index", m.title, m.content, m.metadata
       FROM chunks c JOIN memories m ON m.seq = c.memory
       WHERE c.generation_no = ? ORDER BY c.chunk_index`,
    )
    .iterate(generationNo) as IterableIterator<ChunkText>;
}

/**
 * Finds the chunks before and after these memories in their documents, at most `each` on a side, sorted by `memoryNo`
 * and then in the order of the text. A memory that is no chunk has none. Neither the memory itself nor the document's
 * root memory is returned.
 * @returns `nearNo` is the number of the chunk near `memoryNo`, as a memory, and `distance` its distance in chunks,
 *   negative for a chunk before
 */
export function chunksAround(
  store: Store,
  memoryNos: readonly number[],
  each: number,
): { readonly memoryNo: number; readonly nearNo: number; readonly distance: number }[] {
  return store
    .prepare(
      `SELECT d.seq AS memoryNo, near.memory AS nearNo, near.chunk_index - c.chunk_index AS distance
       FROM json_each(?) AS wanted CROSS JOIN memory_dynamics d ON d.seq = wanted.value
         CROSS JOIN chunks c ON c.memory = d.seq AND c.generation_no = d.generation_no AND c.chunk_index > ${ROOT_INDEX}
         CROSS JOIN chunks near ON near.generation_no = c.generation_no
           AND near.chunk_index BETWEEN max(0, c.chunk_index - ?) AND c.chunk_index + ?
       WHERE near.chunk_index <> c.chunk_index ORDER BY d.seq, near.chunk_index`,
    )
    .all(JSON.stringify(memoryNos), each, each) as { memoryNo: number; nearNo: number; distance: number }[];
}

/** Greatest number of chunks that one call of `readTextSlice` reads. */
const SLICE_CHUNKS = 16;
/**
 * Greatest number of bytes of text that one call of `readTextSlice` reads, except for a single larger chunk: an
 * imported chunk may have 1 MiB.
 */
const SLICE_BYTES = 256 * 1024;

/**
 * Position in a document's text between two calls of `readTextSlice`: what the last call returned ends here, and the
 * next call continues here.
 */
export interface TextPlace {
  /** Index, from 0, of the last chunk that `readTextSlice` has returned; ROOT_INDEX (-1) before the first call. */
  readonly after: number;
  /**
   * End of the chunk `after` in the extracted text, exclusive, in UTF-16 code units; 0 before the first call. The next
   * chunk may begin before it, and is then cut so that no text is returned twice.
   */
  readonly end: number;
}

/** Position at the start of a document's text, before anything was read. */
export const TEXT_START: TextPlace = { after: ROOT_INDEX, end: 0 };

/**
 * Reads the next chunks of a document's text: at most 16, of at most 256 KiB together, but at least one. The beginning
 * of a chunk that overlaps the chunk before it is left out. Call it on a snapshot.
 * @param withinTags tags to which the caller's key is bound; each of the chunks must have them
 * @returns `pieces`: the texts, empty if no chunk follows; `place`: the position after them
 * @throws EngineError `not_found` for a chunk that lacks a tag of `withinTags`; `conflict` if a chunk is missing before
 *   a later one. If the last chunks are missing, `pieces` is empty: the caller must compare `place` with the number of
 *   chunks, since a part of the text must not pass for the whole
 */
export function readTextSlice(
  store: Store,
  generationNo: number,
  { after, end }: TextPlace,
  withinTags: readonly string[] = [],
): { readonly pieces: readonly string[]; readonly place: TextPlace } {
  const rows = store
    .prepare(
      `SELECT c.chunk_index AS "index", c.start_offset AS start, c.end_offset AS "end", m.content, m.tags
       FROM chunks c JOIN memories m ON m.seq = c.memory
       WHERE c.generation_no = ? AND c.chunk_index > ? ORDER BY c.chunk_index LIMIT ?`,
    )
    .all(generationNo, after, countWithinSlice(store, generationNo, after)) as {
    index: number;
    start: number;
    end: number;
    content: string;
    tags: string;
  }[];
  const pieces: string[] = [];
  for (const row of rows) {
    if (row.index !== after + 1) throw goneMeanwhile();
    requireBounds(row, withinTags, 'document');
    pieces.push(row.content.slice(Math.max(0, end - row.start)));
    end = row.end;
    after = row.index;
  }
  return { pieces, place: { after, end } };
}

/**
 * Returns how many chunks after the index `after` one slice may read (16 chunks, 256 KiB of text): at least one; 16
 * also if fewer are left.
 */
function countWithinSlice(store: Store, generationNo: number, after: number): number {
  const sizes = store
    .prepare(
      `SELECT octet_length(m.content) FROM chunks c JOIN memories m ON m.seq = c.memory
       WHERE c.generation_no = ? AND c.chunk_index > ? ORDER BY c.chunk_index LIMIT ${SLICE_CHUNKS}`,
    )
    .pluck()
    .all(generationNo, after) as number[];
  let bytes = 0;
  const beyond = sizes.findIndex((size, place) => (bytes += size) > SLICE_BYTES && place > 0);
  return beyond === -1 ? SLICE_CHUNKS : beyond;
}

/** Makes the EngineError `conflict` for a text of which a chunk is missing. */
export function goneMeanwhile(): EngineError {
  return new EngineError('conflict', 'the document was replaced or deleted while it was sent: read it again');
}
