/** Writes rows exactly as the lines of an export have them. Call all of these functions inside a write. */

import { decayLambdaOf, initialSalience, sectorBits } from '../dynamics.ts';
import type {
  MemoryState,
  MemoryStatus,
  PortableDocument,
  PortableLink,
  PortableMemory,
  PortablePlace,
  PortableRevision,
} from '../types.ts';
import { insertChunk } from './chunks.ts';
import { keptHash } from './duplicates.ts';
import { appendStored } from './events.ts';
import { insertLabels } from './labels.ts';
import type { Store } from './open-store.ts';
import { storedExpiry } from './stored-expiry.ts';

/** The values of an imported memory that are not in its line of the export. */
interface MemoryFacts {
  readonly userNo: number;
  /** Whole hash of the memory's text: the result of `contentHash`. */
  readonly contentHash: Buffer;
  /** State that the memory gets. */
  readonly state: MemoryState;
  /**
   * Number of the document generation (parsed version) that the memory is a part of; null if it is no part of a
   * document.
   */
  readonly generationNo: number | null;
  /** Value of the setting `OM_DECAY_LAMBDA`; undefined if it is not set. */
  readonly decayLambda: number | undefined;
  /** Number of the writer (key) that imports; null without a key. */
  readonly writerNo: number | null;
  readonly now: number;
}

/** A stored memory that has the id of an imported line. */
export interface StoredTwin {
  readonly memoryNo: number;
  readonly userId: string;
  readonly userNo: number;
  readonly version: number;
  readonly status: MemoryStatus;
  readonly updatedAt: number;
  /** First 8 bytes of the hash of the text, as `keptHash` returns them. */
  readonly contentHash: Buffer;
}

/** Finds a memory by its id, even if it is hidden from queries or has expired; undefined if there is none. */
export function findTwinById(store: Store, id: string): StoredTwin | undefined {
  return store
    .prepare(
      `SELECT m.seq AS memoryNo, u.user_id AS userId, m.user_no AS userNo, m.version, d.status,
         m.updated_at AS updatedAt, m.content_hash AS contentHash
       FROM memories m CROSS JOIN users u ON u.user_no = m.user_no CROSS JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.id = ?`,
    )
    .get(id) as StoredTwin | undefined;
}

/** A stored document that has the id, or the external id, of an imported line. */
export interface DocumentTwin {
  readonly documentNo: number;
  readonly id: string;
  readonly userId: string;
  readonly state: string;
  /** Number of the generation (parsed version) that is the live one in the document's row; null if there is none. */
  readonly liveNo: number | null;
  /**
   * 1 if queries find that generation, because all of its memories are stored; 0 if not yet; null without a generation.
   */
  readonly isShown: 0 | 1 | null;
  /** Time at which that generation was added, Unix ms; null without a generation. */
  readonly readAt: number | null;
  /** SHA-256 of that generation's file; null if it is not known or there is no generation. */
  readonly fileHash: Buffer | null;
  /** Number of chunks of that generation, whether they are stored yet or not; null without a generation. */
  readonly chunks: number | null;
}

const DOCUMENT_TWIN = `SELECT o.document_no AS documentNo, o.id, o.user_id AS userId, o.state, o.live_no AS liveNo,
    g.hidden = 0 AS isShown, g.created_at AS readAt, g.file_hash AS fileHash, g.chunks
  FROM documents o LEFT JOIN document_generations g ON g.generation_no = o.live_no`;

/** Finds a document by its id, even one that is being erased; undefined if there is none. */
export function findDocumentTwin(store: Store, id: string): DocumentTwin | undefined {
  return store.prepare(`${DOCUMENT_TWIN} WHERE o.id = ?`).get(id) as DocumentTwin | undefined;
}

/**
 * Finds a user's document by its external id, even one that is being erased; undefined if there is none, and for the
 * external id ''.
 */
export function findDocumentNamed(store: Store, userId: string, externalId: string): DocumentTwin | undefined {
  return store
    .prepare(`${DOCUMENT_TWIN} WHERE o.external_id = ? AND o.external_id <> '' AND o.user_id = ?`)
    .get(externalId, userId) as DocumentTwin | undefined;
}

/** Tells whether a memory is stored at this chunk index of a generation already. */
export function hasPlace(store: Store, generationNo: number, index: number): boolean {
  const found = store.prepare('SELECT 1 FROM chunks WHERE generation_no = ? AND chunk_index = ?');
  return found.get(generationNo, index) !== undefined;
}

/**
 * Inserts a memory with its labels and dynamics (salience, state), and adds it to the count of its user's memories. It
 * appends the event `memory.stored`, unless the memory is a part of a document. The caller must insert its words, its
 * name as an item and its job.
 * @returns the number of the memory
 */
export function insertExactMemory(store: Store, line: PortableMemory, facts: MemoryFacts): number {
  const created = line.created_at ?? facts.now;
  const result = store
    .prepare(
      `INSERT INTO memories (id, user_no, session_id, event_time, event_time_given, created_at, updated_at, valid_from,
         valid_to, expires_at, version, confidence, importance, type, external_id, content_hash, tags, files, entities,
         title, gist, metadata, content, value, is_part)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      line.id,
      facts.userNo,
      line.session_id,
      line.event_time ?? created,
      line.event_time === null ? 0 : 1,
      created,
      line.updated_at ?? created,
      line.valid_from,
      line.valid_to,
      storedExpiry(line.expires_at),
      line.version,
      line.confidence,
      line.importance,
      line.memory_type,
      line.external_id,
      keptHash(facts.contentHash),
      JSON.stringify(line.tags),
      JSON.stringify(line.files),
      JSON.stringify(line.entities),
      line.title,
      line.gist,
      JSON.stringify(line.metadata),
      line.content,
      line.value === null ? null : JSON.stringify(line.value),
      facts.generationNo === null ? 0 : 1,
    );
  store.prepare('UPDATE users SET memories = memories + 1 WHERE user_no = ?').run(facts.userNo);
  const memoryNo = Number(result.lastInsertRowid);
  insertLabels(store, { memoryNo, userNo: facts.userNo, tags: line.tags, files: line.files });
  insertExactDynamics(store, memoryNo, line, { ...facts, created });
  return memoryNo;
}

function insertExactDynamics(
  store: Store,
  memoryNo: number,
  line: PortableMemory,
  { created, ...facts }: MemoryFacts & { readonly created: number },
): void {
  const [primary = 'semantic', ...additional] = line.sectors;
  const salience = line.salience ?? { value: initialSalience(line.importance, additional.length), at: created };
  const strength = line.strength ?? { value: 1, at: created };
  store
    .prepare(
      `INSERT INTO memory_dynamics (seq, state, status, primary_sector, sectors, salience, salience_at, salience_now,
         decay_lambda, strength, strength_at, access_count, last_seen_at, generation_no, writer_no)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      memoryNo,
      facts.state,
      line.status,
      primary,
      sectorBits(line.sectors),
      salience.value,
      salience.at,
      salience.value,
      line.decay_lambda ?? decayLambdaOf(primary, facts.decayLambda),
      strength.value,
      strength.at,
      line.access_count,
      line.last_seen_at ?? created,
      facts.generationNo,
      facts.writerNo,
    );
  // The event has the time of the import: an old time would have events purged that came before it in the feed.
  if (facts.generationNo === null) appendStored(store, memoryNo, facts.now);
}

/** Stores the position of a memory in a generation (parsed version) of a document. */
export function insertExactPlace(store: Store, generationNo: number, memoryNo: number, place: PortablePlace): void {
  insertChunk(store, generationNo, memoryNo, {
    index: place.index,
    startOffset: place.start_offset,
    endOffset: place.end_offset,
    pageFrom: place.page_from,
    pageTo: place.page_to,
    headingPath: place.heading_path,
    tokens: place.tokens,
  });
}

/** Tells whether the file has the revision with the values of this version of a memory, which an update replaced. */
export function hasRevision(store: Store, memoryNo: number, version: number): boolean {
  const found = store.prepare('SELECT 1 FROM memory_revisions WHERE memory = ? AND version = ?').get(memoryNo, version);
  return found !== undefined;
}

/**
 * Inserts a revision: values of a memory that an update replaced. Its writer is left empty, since the keys of the
 * exporting file are unknown here.
 */
export function insertExactRevision(store: Store, memoryNo: number, line: PortableRevision): void {
  store
    .prepare(
      `INSERT INTO memory_revisions (memory, version, replaced_at, fields, by_link, status, event_time, valid_from,
         valid_to, snapshot)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      memoryNo,
      line.version,
      line.replaced_at,
      Object.keys(line.replaced).join(','),
      line.by_link ? 1 : 0,
      line.status,
      line.event_time,
      line.valid_from,
      line.valid_to,
      JSON.stringify(line.replaced),
    );
}

/** Inserts a link. The caller must update the chains and statuses of the two memories. */
export function insertExactLink(
  store: Store,
  { src, dst, winner }: { readonly src: number; readonly dst: number; readonly winner: number | null },
  line: PortableLink & { readonly weight: number },
  { writerNo, now }: Pick<MemoryFacts, 'writerNo' | 'now'>,
): void {
  store
    .prepare(
      `INSERT INTO edges (src, dst, type, similarity, weight, automatic, winner, created_at, updated_at, writer_no)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      src,
      dst,
      line.link_type,
      line.similarity,
      line.weight,
      line.automatic ? 1 : 0,
      winner,
      line.created_at ?? now,
      line.updated_at ?? line.created_at ?? now,
      writerNo,
    );
}

/**
 * Inserts a document with its generation, which queries find only once all of its memories are stored (`showComplete`);
 * without chunks they find it at once.
 * @returns the number of the document
 */
export function insertExactDocument(store: Store, line: PortableDocument, writerNo: number | null): number {
  const document = store
    .prepare(
      `INSERT INTO documents (id, user_id, external_id, session_id, source, url, state, created_at, updated_at)
       VALUES (?, ?, ?, ?, ?, ?, 'processing', ?, ?)`,
    )
    .run(
      line.id,
      line.user_id,
      line.external_id ?? '',
      line.session_id,
      line.source,
      line.url,
      line.created_at,
      line.updated_at,
    );
  const documentNo = Number(document.lastInsertRowid);
  const generation = store
    .prepare(
      `INSERT INTO document_generations (document_no, created_at, session_id, source, url, file_name, declared, charset,
         file_hash, bytes, given_title, type, tags, metadata, event_time, expires_at, format, title, authors, language,
         published_at, modified_at, etag, last_modified, pages, pages_done, characters, tokens, chunks, warnings,
         receipt, shown_at, settled_at, writer_no, nameless_of)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
         ?, ?, ?, ?, ?)`,
    )
    .run(
      documentNo,
      line.read_at,
      line.session_id,
      line.source,
      line.url,
      line.file_name,
      line.declared,
      line.charset,
      line.sha256 === null ? null : Buffer.from(line.sha256, 'hex'),
      line.bytes,
      line.given_title,
      line.document_type,
      JSON.stringify(line.tags),
      JSON.stringify(line.metadata),
      line.event_time,
      storedExpiry(line.expires_at),
      line.format,
      line.title,
      JSON.stringify(line.authors),
      line.language,
      line.published_at,
      line.modified_at,
      line.etag,
      line.last_modified,
      line.pages,
      line.pages ?? 0,
      line.characters,
      line.tokens,
      line.chunks,
      JSON.stringify(line.warnings),
      line.receipt === null ? null : JSON.stringify(line.receipt),
      line.shown_at,
      line.ready_at,
      writerNo,
      (line.external_id ?? '') === '' ? line.user_id : null,
    );
  const generationNo = Number(generation.lastInsertRowid);
  store.prepare('UPDATE documents SET live_no = ? WHERE document_no = ?').run(generationNo, documentNo);
  // Chunks arrive one by one, and no query may find half a document.
  if (line.chunks === 0) showComplete(store, { documentNo, generationNo, chunks: 0 });
  return documentNo;
}

/**
 * Lets queries find a document, all of whose memories are stored: its chunks, and the root memory that a document with
 * chunks has. A `processing` document becomes `ready`, or `empty` without chunks.
 */
export function showComplete(
  store: Store,
  { documentNo, generationNo, chunks }: Readonly<Record<'documentNo' | 'generationNo' | 'chunks', number>>,
): void {
  store.prepare('UPDATE document_generations SET hidden = 0 WHERE generation_no = ?').run(generationNo);
  store
    .prepare(`UPDATE documents SET state = ? WHERE document_no = ? AND state = 'processing'`)
    .run(chunks === 0 ? 'empty' : 'ready', documentNo);
}
