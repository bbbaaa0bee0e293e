/** Writes rows as lines of the export format, each a JSON object without its line feed. */
import { sectorsFromBits } from '../dynamics.ts';
import { VECTOR_PRECISIONS } from '../ports.ts';
import type { MemoryOrigin, RevisionRow, ShownDocument, VectorRow } from '../store/export-rows.ts';
import type { LinkRow, LogItemRow } from '../store/export-selection.ts';
import type { MemoryRow } from '../store/memories.ts';
import { parseSnapshot } from '../store/revisions.ts';
import { parseStored } from '../store/stored-json.ts';
import type {
  PortableDocument,
  PortableLine,
  PortableLink,
  PortableLogItem,
  PortableMemory,
  PortableRevision,
} from '../types.ts';

/** A line before it becomes JSON: times are texts, and undefined fields are left out. */
type Written<Line> = { readonly [Name in keyof Required<Line>]: unknown } & Pick<PortableLine, 'type'>;

let lastWritten = { time: 0, text: new Date(0).toISOString() };

/**
 * Writes a time (Unix ms) as an ISO 8601 text in UTC; null for null. Writing one takes 2 microseconds, and many times
 * of a memory are equal, so the last text is cached.
 */
function iso(time: number | null): string | null {
  if (time === null) return null;
  if (time !== lastWritten.time) lastWritten = { time, text: new Date(time).toISOString() };
  return lastWritten.text;
}

/**
 * Writes a memory as a line. Fields with their default value are left out, as most memories have few others.
 * @param vectors the memory's vectors; null to leave them out
 */
export function memoryText(row: MemoryRow, origin: MemoryOrigin, vectors: readonly VectorRow[] | null): string {
  const line: Written<PortableMemory> = {
    type: 'memory',
    id: row.id,
    user_id: row.user_id,
    session_id: row.session_id || undefined,
    content: row.content,
    title: row.title || undefined,
    gist: row.gist || undefined,
    entities: listOf(row.entities),
    memory_type: row.type ?? undefined,
    tags: listOf(row.tags),
    files: listOf(row.files),
    metadata: row.metadata === '{}' ? undefined : parseStored(row.metadata),
    importance: row.importance ?? undefined,
    confidence: row.confidence === 1 ? undefined : row.confidence,
    event_time: origin.event_time_given === 1 ? iso(row.event_time) : undefined,
    valid_from: iso(row.valid_from) ?? undefined,
    valid_to: iso(row.valid_to) ?? undefined,
    expires_at: iso(row.expires_at) ?? undefined,
    external_id: origin.external_id ?? undefined,
    item:
      origin.item_key === null
        ? undefined
        : { namespace: row.namespace ?? '', key: origin.item_key, ttl_ms: row.ttl_ms ?? undefined },
    value: row.value === null ? undefined : parseStored(row.value),
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
    version: row.version,
    status: row.status,
    state: row.state,
    sectors: row.sectors === 0 ? [] : sectorsFromBits(row.sectors, row.primary_sector),
    salience: { value: row.salience, at: iso(row.salience_at) },
    decay_lambda: row.decay_lambda,
    strength: { value: row.strength, at: iso(row.strength_at) },
    access_count: row.access_count || undefined,
    last_seen_at: iso(row.last_seen_at),
    document: placeOf(origin),
    written_by: row.written_by ?? undefined,
    vectors: vectors?.map(vectorOf),
  };
  return JSON.stringify(line);
}

function listOf(json: string): unknown {
  return json === '[]' ? undefined : parseStored(json);
}

function placeOf(origin: MemoryOrigin): unknown {
  if (origin.document_id === null || origin.chunk_index === null) return undefined;
  return {
    id: origin.document_id,
    index: origin.chunk_index,
    start_offset: origin.start_offset,
    end_offset: origin.end_offset,
    page_from: origin.page_from,
    page_to: origin.page_to,
    heading_path: parseStored(origin.heading_path),
    tokens: origin.chunk_tokens,
  };
}

function vectorOf({ memory: _, precisionNo, bytes, ...vector }: VectorRow): unknown {
  return { ...vector, precision: VECTOR_PRECISIONS[precisionNo - 1] ?? null, data: bytes.toString('base64') };
}

/** Writes a revision (the values of a memory that an update replaced) as a line. */
export function revisionText(row: RevisionRow): string {
  const line: Written<PortableRevision> = {
    type: 'revision',
    memory: row.memory_id,
    version: row.version,
    replaced_at: iso(row.replaced_at),
    by_link: row.by_link === 1,
    status: row.status,
    event_time: iso(row.event_time),
    valid_from: iso(row.valid_from),
    valid_to: iso(row.valid_to),
    replaced: parseSnapshot(row.snapshot).replaced,
    written_by: row.written_by ?? undefined,
  };
  return JSON.stringify(line);
}

/** Writes a link as a line. */
export function linkText({ type, automatic, created_at, updated_at, ...row }: LinkRow): string {
  const line: Written<PortableLink> = {
    type: 'link',
    src: row.src,
    dst: row.dst,
    link_type: type,
    similarity: row.similarity ?? undefined,
    weight: row.weight,
    automatic: automatic === 1,
    winner: row.winner ?? undefined,
    created_at: iso(created_at),
    updated_at: iso(updated_at),
    written_by: row.written_by ?? undefined,
  };
  return JSON.stringify(line);
}

/** Writes an item of a session log as a line. */
export function logItemText({ item, created_at, ...row }: LogItemRow): string {
  const line: Written<PortableLogItem> = {
    type: 'session_item',
    user_id: row.user_id,
    session_id: row.session_id,
    position: row.position,
    item: parseStored(item),
    created_at: iso(created_at),
    written_by: row.written_by ?? undefined,
  };
  return JSON.stringify(line);
}

/**
 * Writes a document without its text as a line.
 * @param writtenBy id of the API key that added it; null if it is not known
 */
export function documentText({ document, generation }: ShownDocument, writtenBy: string | null): string {
  const line: Written<PortableDocument> = {
    type: 'document',
    id: document.id,
    user_id: document.user_id,
    session_id: generation.session_id,
    external_id: document.external_id === '' ? null : document.external_id,
    source: generation.source,
    url: generation.url,
    file_name: generation.file_name,
    charset: generation.charset,
    declared: generation.declared,
    format: generation.format,
    sha256: generation.file_hash?.toString('hex') ?? null,
    bytes: generation.bytes,
    given_title: generation.given_title,
    title: generation.title,
    authors: parseStored(generation.authors),
    language: generation.language,
    published_at: iso(generation.published_at),
    modified_at: iso(generation.modified_at),
    etag: generation.etag,
    last_modified: generation.last_modified,
    document_type: generation.type,
    tags: parseStored(generation.tags),
    metadata: parseStored(generation.metadata),
    event_time: iso(generation.event_time),
    expires_at: iso(generation.expires_at),
    pages: generation.pages,
    characters: generation.characters,
    tokens: generation.tokens,
    chunks: generation.chunks,
    warnings: parseStored(generation.warnings),
    receipt: generation.receipt === null ? null : parseStored(generation.receipt),
    created_at: iso(document.created_at),
    updated_at: iso(document.updated_at),
    read_at: iso(generation.created_at),
    shown_at: iso(generation.shown_at),
    ready_at: iso(generation.settled_at),
    written_by: writtenBy,
  };
  return JSON.stringify(line);
}
