import { parseStored } from './stored-json.ts';
import type { BoundOptions, DocumentFormat, Provenance, DocumentChunk } from '../types.ts';
import { requireBounds } from './bounds.ts';
import { ROOT_INDEX } from './chunks.ts';
import { foundByTheWay } from './found-by-the-way.ts';
import type { Store } from './open-store.ts';

interface ProvenanceRow {
  readonly memory: number;
  readonly memory_id: string;
  readonly id: string;
  readonly title: string;
  readonly given_title: string;
  readonly file_name: string;
  readonly url: string;
  readonly format: DocumentFormat | null;
  readonly file_hash: Buffer | null;
  readonly chunk_index: number;
  readonly chunks: number;
  readonly start_offset: number;
  readonly end_offset: number;
  readonly page_from: number | null;
  readonly page_to: number | null;
  readonly heading_path: string;
  readonly tokens: number;
  readonly created_at: number;
}

const PROVENANCE = `c.memory, m.id AS memory_id, o.id, g.title, g.given_title, g.file_name, g.url, g.format,
  g.file_hash, c.chunk_index, g.chunks, c.start_offset, c.end_offset, c.page_from, c.page_to, c.heading_path,
  c.tokens, g.created_at`;

/**
 * Reads the positions of these memories in their documents, by memory number. A memory that is no part of a document is
 * left out.
 */
export function readProvenance(store: Store, memoryNos: readonly number[]): Map<number, Provenance> {
  const { inNoDocument } = foundByTheWay(store);
  const open = memoryNos.filter((memoryNo) => !inNoDocument.has(memoryNo));
  if (open.length === 0) return new Map();
  const rows = store
    .prepare(
      `SELECT ${PROVENANCE} FROM json_each(?) AS wanted CROSS JOIN memory_dynamics d ON d.seq = wanted.value
         CROSS JOIN document_generations g ON g.generation_no = d.generation_no
         CROSS JOIN documents o ON o.document_no = g.document_no
         CROSS JOIN chunks c ON c.memory = d.seq AND c.generation_no = d.generation_no
         CROSS JOIN memories m ON m.seq = d.seq`,
    )
    .all(JSON.stringify(open)) as ProvenanceRow[];
  return new Map(rows.map((row) => [row.memory, toProvenance(row)]));
}

/** Greatest number of chunks that one call of `readChunkSlice` reads; each takes some 5 µs. */
const SLICE_CHUNKS = 256;
/**
 * Greatest number of bytes of headings, titles and names that one call of `readChunkSlice` reads, except for a single
 * larger chunk.
 */
const SLICE_BYTES = 256 * 1024;

/** Position in the chunks of a document between two slices. */
export interface ChunkListPlace {
  /** Generation (parsed version) of the document that is listed. */
  readonly generationNo: number;
  /** Index of the last chunk that was read; ROOT_INDEX (-1) before the first. */
  readonly after: number;
}

/** A slice of the chunks of a document, and the position after it; null at the end of the document. */
export interface ChunkSlice {
  readonly items: readonly DocumentChunk[];
  readonly next: ChunkListPlace | null;
}

/**
 * Reads the next chunks of a document generation (parsed version), in the order of the text, without the root memory:
 * at most `limit` and 256, with at most 256 KiB of headings, titles and names, but at least one.
 * @param options.offset number of chunks after `place` that are passed over
 * @param options.withinTags tags to which the caller's key is bound; each of the chunks must have them
 * @throws EngineError `not_found` for a chunk that lacks one of these tags
 */
export function readChunkSlice(
  store: Store,
  { generationNo, after }: ChunkListPlace,
  { limit, offset, withinTags }: { readonly limit: number; readonly offset: number } & BoundOptions,
): ChunkSlice {
  const near = store
    .prepare(
      `SELECT c.chunk_index AS "index", octet_length(c.heading_path) + octet_length(g.title) +
         octet_length(g.given_title) + octet_length(g.file_name) + octet_length(g.url) AS bytes
       FROM chunks c JOIN document_generations g ON g.generation_no = c.generation_no
       WHERE c.generation_no = ? AND c.chunk_index > ? ORDER BY c.chunk_index LIMIT ? OFFSET ?`,
    )
    .all(generationNo, after, Math.min(limit, SLICE_CHUNKS) + 1, offset) as { index: number; bytes: number }[];
  let bytes = 0;
  const beyond = near.findIndex((chunk, place) => {
    bytes += chunk.bytes;
    return place > 0 && (bytes > SLICE_BYTES || place === Math.min(limit, SLICE_CHUNKS));
  });
  const taken = beyond === -1 ? near : near.slice(0, beyond);
  if (taken.length === 0) return { items: [], next: null };
  const last = taken.at(-1)!.index;
  const rows = store
    .prepare(
      `SELECT ${PROVENANCE}, m.tags FROM chunks c JOIN document_generations g ON g.generation_no = c.generation_no
         JOIN documents o ON o.document_no = g.document_no JOIN memories m ON m.seq = c.memory
       WHERE c.generation_no = ? AND c.chunk_index BETWEEN ? AND ? ORDER BY c.chunk_index`,
    )
    .all(generationNo, taken[0]!.index, last) as (ProvenanceRow & { readonly tags: string })[];
  for (const row of rows) requireBounds(row, withinTags, 'document');
  return {
    items: rows.map((row) => ({ memoryId: row.memory_id, provenance: toProvenance(row), tokens: row.tokens })),
    next: beyond === -1 ? null : { generationNo, after: last },
  };
}

function toProvenance(row: ProvenanceRow): Provenance {
  const isRoot = row.chunk_index === ROOT_INDEX;
  return {
    documentId: row.id,
    title: row.title || row.given_title,
    fileName: row.file_name === '' ? null : row.file_name,
    url: row.url === '' ? null : row.url,
    format: row.format,
    sha256: row.file_hash?.toString('hex') ?? null,
    chunk: isRoot ? null : row.chunk_index,
    chunks: row.chunks,
    startOffset: isRoot ? null : row.start_offset,
    endOffset: isRoot ? null : row.end_offset,
    pageFrom: row.page_from,
    pageTo: row.page_to,
    headingPath: parseStored(row.heading_path) as string[],
    ingestedAt: row.created_at,
  };
}
