/** Translates memories between the engine's names and the field names of the API: snake_case, times in Unix ms. */
import {
  type AddOutcome,
  type AddReply,
  type ErasureReceipt,
  jsonOf,
  type Receipted,
  type Link,
  type Memory,
  type MemoryPatch,
  type NewMemory,
  type Revision,
  shownEntities,
  shownGist,
} from '../../engine/index.ts';
import type { DeletedItem } from '../schemas/deleted-reply.ts';
import type { NewMemoryBody, PatchBody } from '../schemas/memories.ts';
import type { ScreenedItem } from '../schemas/privacy.ts';
import type {
  AcceptedItem,
  BatchOutcome,
  DuplicateItem,
  FinishedItem,
  LinkItem,
  MemoryItem,
  RevisionItem,
  StoredMemory,
} from '../schemas/memory-replies.ts';

/** Fields of a request that describe the text of a new memory or item, under the names of the API. */
type Described = Pick<
  NewMemoryBody,
  | 'tags'
  | 'files'
  | 'metadata'
  | 'type'
  | 'title'
  | 'gist'
  | 'entities'
  | 'event_time'
  | 'valid_from'
  | 'valid_to'
  | 'expires_at'
  | 'importance'
  | 'confidence'
>;

/**
 * Translates the description of a text. Fields that were left out get their defaults: '', an empty list or object, null
 * if not stated, and a confidence of 1.
 */
export function toDescription(body: Described) {
  return {
    tags: body.tags ?? [],
    files: body.files ?? [],
    metadata: body.metadata ?? {},
    type: body.type ?? null,
    title: body.title ?? '',
    gist: body.gist ?? '',
    entities: body.entities ?? null,
    eventTime: body.event_time ?? null,
    validFrom: body.valid_from ?? null,
    validTo: body.valid_to ?? null,
    expiresAt: body.expires_at ?? null,
    importance: body.importance ?? null,
    confidence: body.confidence ?? 1,
  };
}

/**
 * Translates a memory to add. Fields that were left out get the defaults of `toDescription`; the user and the session
 * are '', the external id is null, and the rest is undefined.
 */
export function toNewMemory(body: NewMemoryBody): NewMemory {
  return {
    content: body.content,
    userId: body.user_id ?? '',
    sessionId: body.session_id ?? '',
    ...toDescription(body),
    externalId: body.external_id ?? null,
    onDuplicate: body.on_duplicate ?? undefined,
    supersedes: body.supersedes ?? undefined,
  };
}

/** Translates a patch. A field that was left out becomes undefined, which keeps its value. */
export function toPatch(body: PatchBody): MemoryPatch {
  return {
    content: body.content,
    title: body.title,
    gist: body.gist,
    entities: body.entities,
    type: body.type,
    tags: body.tags,
    files: body.files,
    metadata: body.metadata,
    eventTime: body.event_time,
    validFrom: body.valid_from,
    validTo: body.valid_to,
    expiresAt: body.expires_at,
    importance: body.importance,
    confidence: body.confidence,
    status: body.status,
  };
}

/**
 * Translates a memory that is requested by itself or in a list. Its gist (short summary) and entities (mentioned names)
 * are derived from its text unless they were stated.
 */
export function memoryItem(memory: Memory): MemoryItem {
  return { ...storedMemoryItem(memory), gist: shownGist(memory), entities: shownEntities(memory) };
}

/**
 * Translates a memory in the answer to a query, with the stored fields only. Its gist and entities are left out, since
 * deriving them from the text takes longer than the search.
 */
export function storedMemoryItem(memory: Memory): StoredMemory {
  const value = jsonOf(memory, 'value');
  return {
    id: memory.id,
    user_id: memory.userId,
    session_id: memory.sessionId,
    content: memory.content,
    title: memory.title,
    type: memory.type,
    tags: memory.tags,
    files: memory.files,
    metadata: jsonOf(memory, 'metadata'),
    primary_sector: memory.primarySector,
    sectors: memory.sectors,
    sector_confidence: memory.sectorConfidence,
    state: memory.state,
    status: memory.status,
    salience: memory.salience,
    strength: memory.strength,
    decay_lambda: memory.decayLambda,
    confidence: memory.confidence,
    importance: memory.importance,
    access_count: memory.accessCount,
    last_seen_at: memory.lastSeenAt,
    created_at: memory.createdAt,
    updated_at: memory.updatedAt,
    event_time: memory.eventTime,
    valid_from: memory.validFrom,
    valid_to: memory.validTo,
    expires_at: memory.expiresAt,
    external_id: memory.externalId,
    ...(memory.namespace === '' ? {} : { namespace: memory.namespace }),
    ...(value === null ? {} : { value }),
    written_by: memory.writtenBy,
    version: memory.version,
  };
}

/** Makes the result of one item in the reply to a batch. */
export function outcomeItem(outcome: AddOutcome): BatchOutcome {
  switch (outcome.kind) {
    case 'accepted':
      return { id: outcome.id, state: 'queued', job_id: outcome.jobId, ...screenedItem(outcome) };
    case 'duplicate':
      return duplicateItem(outcome);
    case 'rejected':
      return { error: outcome.error };
  }
}

export function duplicateItem(outcome: Extract<AddOutcome, { kind: 'duplicate' }>): DuplicateItem {
  const { id, primarySector, sectors, state } = outcome;
  return { id, primary_sector: primarySector, sectors, deduplicated: true, state, ...screenedItem(outcome) };
}

export function acceptedItem(outcome: Extract<AddOutcome, { kind: 'accepted' }>, reply: AddReply): AcceptedItem {
  return { id: outcome.id, job_id: outcome.jobId, state: 'queued', token: reply.token, ...screenedItem(outcome) };
}

/** Returns which sensitive values of an added memory were redacted or marked; an empty object if none was found. */
export function screenedItem({ screened }: Pick<Extract<AddOutcome, { kind: 'accepted' }>, 'screened'>): ScreenedItem {
  const { redacted = {}, marked = [] } = screened ?? {};
  return {
    ...(Object.keys(redacted).length > 0 ? { redacted } : {}),
    ...(marked.length > 0 ? { sensitive: [...marked] } : {}),
  };
}

export function finishedItem(memory: Memory): FinishedItem {
  const { id, primarySector, sectors, state } = memory;
  return { id, primary_sector: primarySector, sectors, chunks: 1, state };
}

export function linkItem(link: Link): LinkItem {
  return {
    id: link.id,
    type: link.type,
    direction: link.direction,
    similarity: link.similarity,
    weight: link.weight,
    automatic: link.automatic,
    created_at: link.createdAt,
    updated_at: link.updatedAt,
    written_by: link.writtenBy,
  };
}

/**
 * Translates a revision (the earlier values of changed fields). The replaced fields get their API names, in snake_case.
 */
export function revisionItem(revision: Revision): RevisionItem {
  const values = revision.replaced;
  const replaced = Object.fromEntries(Object.keys(values).map((field) => [snakeCase(field), jsonOf(values, field)]));
  return { version: revision.version, replaced_at: revision.replacedAt, written_by: revision.writtenBy, replaced };
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Makes the reply to a delete: the numbers of removed rows by kind, and the other fields of the delete's receipt. */
export function deletedItem(receipt: Receipted<ErasureReceipt>): DeletedItem {
  const { cachedEmbeddings } = receipt;
  const removed = {
    memories: receipt.memories,
    documents: receipt.documents,
    vectors: receipt.vectors,
    edges: receipt.edges,
    revisions: receipt.revisions,
    jobs: receipt.jobs,
    ...(cachedEmbeddings === undefined ? {} : { cached_embeddings: cachedEmbeddings }),
    stored_replies: receipt.storedReplies,
  };
  const { restored, unrestored, logItems, standingQueries, webhooks } = receipt;
  return {
    ok: true,
    deleted: receipt.memories,
    removed,
    ...(receipt.erasure === undefined ? {} : { erasure: receipt.erasure }),
    ...(logItems === undefined ? {} : { log_items: logItems }),
    ...(standingQueries === undefined || webhooks === undefined ? {} : { standing_queries: standingQueries, webhooks }),
    ...(restored === undefined || unrestored === undefined ? {} : { restored, unrestored }),
  };
}
