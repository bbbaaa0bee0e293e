/** Translates documents between the engine's names and the field names of the API. */
import type {
  Document,
  DocumentChunk,
  DocumentReply,
  NewDocument,
  Provenance,
  TextReceipt,
} from '../../engine/index.ts';
import type {
  ChunkItem,
  DocumentItem,
  DocumentOutcomeItem,
  IngestedItem,
  ProvenanceItem,
  ReceiptItem,
} from '../schemas/document-replies.ts';
import type { DocumentFields } from '../schemas/documents.ts';

export function toNewDocument(fields: DocumentFields, source: NewDocument['source']): NewDocument {
  return {
    source,
    userId: fields.user_id ?? '',
    sessionId: fields.session_id ?? '',
    externalId: fields.external_id ?? null,
    title: fields.title ?? '',
    type: fields.type ?? null,
    tags: fields.tags ?? [],
    metadata: fields.metadata ?? {},
    eventTime: fields.event_time ?? null,
    expiresAt: fields.expires_at ?? null,
  };
}

export function documentItem(document: Document): DocumentItem {
  const { progress, receipt } = document;
  return {
    id: document.id,
    user_id: document.userId,
    session_id: document.sessionId,
    external_id: document.externalId,
    written_by: document.writtenBy,
    state: document.state,
    error: document.error,
    source: document.source,
    url: document.url,
    file_name: document.fileName,
    format: document.format,
    bytes: document.bytes,
    sha256: document.sha256,
    title: document.title,
    authors: document.authors,
    language: document.language,
    published_at: document.publishedAt,
    modified_at: document.modifiedAt,
    type: document.type,
    tags: document.tags,
    metadata: document.metadata,
    event_time: document.eventTime,
    expires_at: document.expiresAt,
    root_memory_id: document.rootMemoryId,
    chunks: document.chunks,
    pages: document.pages,
    characters: document.characters,
    tokens: document.tokens,
    progress: {
      pages_done: progress.pagesDone,
      chunks: progress.chunks,
      embedded: progress.embedded,
      linked: progress.linked,
      failed: progress.failed,
      stages: progress.stages,
    },
    receipt: receipt && { stored: receipt.stored, kept: receipt.kept, removed: receipt.removed },
    warnings: document.warnings,
    job_id: document.jobId,
    created_at: document.createdAt,
    updated_at: document.updatedAt,
    shown_at: document.shownAt,
    ready_at: document.readyAt,
  };
}

/**
 * Makes the outcome of one document, for the result of a batch. The reply to a single document adds the write receipt
 * (`token`).
 */
export function documentOutcomeItem({ document, outcome, jobId }: DocumentReply): DocumentOutcomeItem {
  return { document_id: document.id, job_id: jobId, state: document.state, outcome };
}

/** Makes the reply about a document with the additional fields that OpenMemory's clients expect. */
export function ingestedItem(document: Document, { outcome, jobId, token }: DocumentReply): IngestedItem {
  return {
    ...documentItem(document),
    document_id: document.id,
    job_id: jobId,
    outcome,
    token,
    child_count: document.chunks,
    total_tokens: document.tokens,
    strategy: document.chunks > 1 ? 'root-child' : 'single',
    extraction: {
      content_type: document.format,
      char_count: document.characters,
      estimated_tokens: document.tokens,
      extraction_method: document.format,
    },
  };
}

/** Translates the document that a match comes from, and the match's position in it. */
export function provenanceItem(provenance: Provenance): ProvenanceItem {
  return {
    document_id: provenance.documentId,
    title: provenance.title,
    file_name: provenance.fileName,
    url: provenance.url,
    format: provenance.format,
    sha256: provenance.sha256,
    ...positionItem(provenance),
    chunks: provenance.chunks,
    ingested_at: provenance.ingestedAt,
  };
}

export function chunkItem({ memoryId, provenance, tokens }: DocumentChunk): ChunkItem {
  return { memory_id: memoryId, ...positionItem(provenance), tokens };
}

export function receiptItem(receipt: TextReceipt): ReceiptItem {
  return {
    id: receipt.documentId,
    root_memory_id: receipt.rootMemoryId,
    characters: receipt.characters,
    held: receipt.held,
    sha256: receipt.sha256,
    held_sha256: receipt.heldSha256,
    complete: receipt.isComplete,
    stored: receipt.stored,
    kept: receipt.kept,
    removed: receipt.removed,
    items: receipt.spans.map((span) => ({
      memory_id: span.memoryId,
      chunk: span.chunk,
      start_offset: span.startOffset,
      own_offset: span.ownOffset,
      end_offset: span.endOffset,
      kept: span.isKept,
      intact: span.isIntact,
    })),
    total: receipt.total,
    omissions: receipt.omissions,
    warnings: receipt.warnings,
  };
}

function positionItem({ chunk, startOffset, endOffset, pageFrom, pageTo, headingPath }: Provenance) {
  return {
    chunk,
    start_offset: startOffset,
    end_offset: endOffset,
    page_from: pageFrom,
    page_to: pageTo,
    heading_path: headingPath,
  };
}
