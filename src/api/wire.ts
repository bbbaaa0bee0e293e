import type { AddReply, DocumentReply } from '../engine/types.ts';
import { shownEntities, shownGist } from '../engine/entities/skim.ts';
import type {
  AddOutcome,
  DeleteReceipt,
  Document,
  DocumentChunk,
  EmbedLogEntry,
  Episode,
  Hit,
  Job,
  Link,
  Memory,
  MemoryExplanation,
  MemoryPatch,
  MemoryQuery,
  NewDocument,
  NewMemory,
  Provenance,
  ProviderUsage,
  FloorReport,
  QueryResult,
  ReembedStatus,
  RetrievalOptions,
  Revision,
  StepBacklog,
  Timeline,
} from '../engine/types.ts';
import type { DocumentFields, NewMemoryBody, PatchBody, QueryBody, RetrievalBody } from './schemas.ts';

/** Both directions between the engine's names and the wire's: snake_case, times in Unix ms. */

export const DEFAULT_K = 8;

export function toNewMemory(body: NewMemoryBody): NewMemory {
  return {
    content: body.content,
    userId: body.user_id ?? '',
    sessionId: body.session_id ?? '',
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
    externalId: body.external_id ?? null,
  };
}

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

export function toRetrievalOptions(body: RetrievalBody): RetrievalOptions {
  return {
    profile: body.profile ?? undefined,
    weights: body.weights ?? undefined,
    columnWeights: body.column_weights ?? undefined,
    vectorWeight: body.vector_weight ?? undefined,
    kSparse: body.k_sparse ?? undefined,
    kDense: body.k_dense ?? undefined,
    denseSectors: body.dense_sectors ?? undefined,
    sessionPrior: body.session_prior ?? undefined,
    maxHops: body.max_hops ?? undefined,
    decayPerHop: body.decay_per_hop ?? undefined,
    entityGraph: body.entity_graph ?? undefined,
    rerank: body.rerank ?? undefined,
    minScore: body.min_score ?? undefined,
    relativeFloor: body.relative_floor ?? undefined,
    perDocument: body.per_document ?? undefined,
  };
}

/** What was set and nothing else, so that it can be sent back as it is. */
export function retrievalItem(options: RetrievalOptions): RetrievalBody {
  return {
    profile: options.profile,
    weights: options.weights,
    column_weights: options.columnWeights,
    vector_weight: options.vectorWeight,
    k_sparse: options.kSparse,
    k_dense: options.kDense,
    dense_sectors: options.denseSectors,
    session_prior: options.sessionPrior,
    max_hops: options.maxHops,
    decay_per_hop: options.decayPerHop,
    entity_graph: options.entityGraph,
    rerank: options.rerank,
    min_score: options.minScore,
    relative_floor: options.relativeFloor,
    per_document: options.perDocument,
  };
}

/** A user named in two places must satisfy both. */
export function toQuery(body: QueryBody): MemoryQuery {
  const filters = body.filters ?? {};
  const options = toRetrievalOptions(body);
  const asOf = typeof body.as_of === 'number' ? { valid: body.as_of } : body.as_of;
  return {
    ...options,
    query: body.query,
    k: body.k ?? DEFAULT_K,
    filter: {
      userIds: intersection([only(body.user_id), only(filters.user_id), filters.users]),
      sessionIds: filters.sessions,
      sectors: intersection([only(filters.sector), filters.sectors]),
      types: filters.types,
      tags: filters.tags,
      statuses: filters.statuses,
      externalIds: filters.external_ids,
      documentIds: filters.documents,
      eventFrom: filters.event_time?.from,
      eventTo: filters.event_time?.to,
      createdFrom: largest([filters.created_at?.from, filters.startTime, body.startTime]),
      createdTo: smallest([filters.created_at?.to, inclusive(filters.endTime), inclusive(body.endTime)]),
      metadata: filters.metadata,
    },
    minScore: options.minScore ?? filters.min_score ?? undefined,
    tokenBudget: body.token_budget ?? undefined,
    deepRecall: body.deep_recall ?? undefined,
    asOf: asOf ?? undefined,
    topK: body.top_k ?? undefined,
    format: body.format ?? undefined,
    includeEpisodes: body.include_episodes ?? undefined,
    expand: body.expand ?? undefined,
    reinforce: body.reinforce ?? undefined,
    explain: body.explain ?? undefined,
  };
}

const only = <Value>(value: Value | null | undefined): readonly Value[] | undefined =>
  value == null ? undefined : [value];
const given = (times: readonly (number | null | undefined)[]) => times.filter((time) => time != null);
const largest = (times: readonly (number | null | undefined)[]) =>
  given(times).length === 0 ? undefined : Math.max(...given(times));
const smallest = (times: readonly (number | null | undefined)[]) =>
  given(times).length === 0 ? undefined : Math.min(...given(times));
/** OpenMemory's end belongs to the range, ours is half-open. */
const inclusive = (time: number | null | undefined) => (time == null ? undefined : time + 1);

function intersection<Value>(lists: readonly (readonly Value[] | undefined)[]): readonly Value[] | undefined {
  return lists.reduce(
    (common, list) => (common && list ? common.filter((value) => list.includes(value)) : (common ?? list)),
    undefined,
  );
}

export function memoryItem(memory: Memory) {
  return { ...storedFields(memory), gist: shownGist(memory), entities: shownEntities(memory) };
}

function storedFields(memory: Memory) {
  return {
    id: memory.id,
    user_id: memory.userId,
    session_id: memory.sessionId,
    content: memory.content,
    title: memory.title,
    type: memory.type,
    tags: memory.tags,
    files: memory.files,
    metadata: memory.metadata,
    primary_sector: memory.primarySector,
    sectors: memory.sectors,
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
    version: memory.version,
  };
}

/** @param tokenSatisfied undefined where no token was sent */
export function queryReply({ query, format }: MemoryQuery, result: QueryResult, tokenSatisfied?: boolean) {
  const { hits, episodes, rendered, floor, trace } = result;
  return {
    query,
    ...(rendered === undefined
      ? { matches: hits.map(matchItem), ...(episodes === undefined ? {} : { episodes: episodes.map(episodeItem) }) }
      : { format, text: rendered.text, tokens: rendered.tokens, ids: hits.map(({ memory }) => memory.id) }),
    degraded: result.degraded,
    recall_id: result.recallId,
    ...(floor === undefined ? {} : { floor: floorItem(floor) }),
    ...(tokenSatisfied === undefined ? {} : { token_satisfied: tokenSatisfied }),
    ...(trace === undefined ? {} : { trace }),
  };
}

function floorItem({ minScore, acted, reason, below, bestBelow }: FloorReport) {
  return { min_score: minScore, acted, ...(reason === undefined ? {} : { reason }), below, best_below: bestBelow };
}

/** A hit and what stands around it leave out `gist` and `entities`, which cost more to read off a text than the search that found it. */
export function matchItem(hit: Hit) {
  const { supersedes, neighbours, sources, document, explain } = hit;
  return {
    ...storedFields(hit.memory),
    score: hit.score,
    raw_score: hit.rawScore,
    path: hit.path,
    ...(supersedes === undefined ? {} : { supersedes }),
    ...(neighbours === undefined
      ? {}
      : {
          neighbours: { before: neighbours.before.map(storedFields), after: neighbours.after.map(storedFields) },
        }),
    ...(sources === undefined ? {} : { sources: sources.map(storedFields) }),
    ...(document === undefined ? {} : { document: provenanceItem(document) }),
    ...(explain === undefined ? {} : { explain }),
  };
}

function episodeItem({ kind, id, userId, title, memory, memoryIds }: Episode) {
  return { kind, id, user_id: userId, title, memory: memory && storedFields(memory), memory_ids: memoryIds };
}

export function timelineItem({ before, anchor, after }: Timeline) {
  return { before: before.map(memoryItem), anchor: memoryItem(anchor), after: after.map(memoryItem) };
}

export function explanationItem(explanation: MemoryExplanation) {
  const { terms } = explanation;
  return {
    memory_id: explanation.memoryId,
    outcome: explanation.outcome,
    rank: explanation.rank,
    score: explanation.score,
    raw_score: explanation.rawScore,
    failed_filters: explanation.failedFilters,
    superseded_by: explanation.supersededBy,
    terms: { matched: terms.matched, in_context: terms.inContext, missed: terms.missed },
    cosine: explanation.cosine,
    explain: explanation.explain,
    remedies: explanation.remedies,
    changes: explanation.changes,
    trace: explanation.trace,
  };
}

/** One line of a batch's reply. */
export function outcomeItem(outcome: AddOutcome) {
  switch (outcome.kind) {
    case 'accepted':
      return { id: outcome.id, state: 'queued', job_id: outcome.jobId };
    case 'duplicate':
      return { ...duplicateItem(outcome) };
    case 'rejected':
      return { error: outcome.error };
  }
}

export function duplicateItem(outcome: Extract<AddOutcome, { kind: 'duplicate' }>) {
  const { id, primarySector, sectors, state } = outcome;
  return { id, primary_sector: primarySector, sectors, deduplicated: true, state };
}

export function acceptedItem(outcome: Extract<AddOutcome, { kind: 'accepted' }>, reply: AddReply) {
  return { id: outcome.id, job_id: outcome.jobId, state: 'queued', token: reply.token };
}

/** `chunks` is what OpenMemory's clients expect; a memory is always kept whole. */
export function finishedItem(memory: Memory) {
  const { id, primarySector, sectors, state } = memory;
  return { id, primary_sector: primarySector, sectors, chunks: 1, state };
}

export function providerCallItem(call: EmbedLogEntry) {
  return {
    at: call.at,
    provider: call.provider,
    model: call.model,
    server: call.server,
    purpose: call.purpose,
    texts: call.texts,
    tokens: call.tokens,
    output_tokens: call.outputTokens,
    ms: Math.round(call.ms * 10) / 10,
    cost_usd: call.costUsd,
    error: call.error,
  };
}

export function providerUsageItem(usage: ProviderUsage) {
  return {
    day: usage.day,
    provider: usage.provider,
    model: usage.model,
    purpose: usage.purpose,
    calls: usage.calls,
    failed: usage.failed,
    texts: usage.texts,
    tokens: usage.tokens,
    output_tokens: usage.outputTokens,
    cost_usd: usage.costUsd,
    cached_texts: usage.cachedTexts,
    saved_tokens: usage.savedTokens,
  };
}

export function jobItem(job: Job) {
  return {
    id: job.id,
    kind: job.kind,
    memory_id: job.memoryId,
    document_id: job.documentId,
    step: job.step,
    state: job.state,
    priority: job.priority,
    attempts: job.attempts,
    crashes: job.crashes,
    run_at: job.runAt,
    error: job.error,
    created_at: job.createdAt,
    updated_at: job.updatedAt,
    finished_at: job.finishedAt,
    timeline: job.timeline,
  };
}

export function backlogItem({ step, queued, active, failed, oldestAt }: StepBacklog, now: number) {
  return { step, queued, active, failed, oldest_age_ms: Math.max(0, now - oldestAt) };
}

export function linkItem(link: Link) {
  return {
    id: link.id,
    type: link.type,
    direction: link.direction,
    similarity: link.similarity,
    weight: link.weight,
    automatic: link.automatic,
    created_at: link.createdAt,
    updated_at: link.updatedAt,
  };
}

/** The replaced fields by their names on the wire. */
export function revisionItem(revision: Revision) {
  const replaced = Object.fromEntries(
    Object.entries(revision.replaced).map(([field, value]) => [snakeCase(field), value]),
  );
  return { version: revision.version, replaced_at: revision.replacedAt, replaced };
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** What a delete removed, as counts of rows. */
export function receiptItem(receipt: DeleteReceipt) {
  return {
    memories: receipt.memories,
    documents: receipt.documents,
    vectors: receipt.vectors,
    edges: receipt.edges,
    revisions: receipt.revisions,
    jobs: receipt.jobs,
    cached_embeddings: receipt.cachedEmbeddings,
    stored_replies: receipt.storedReplies,
  };
}

// ── Documents ────────────────────────────────────────────────────────────────────────────────────────────────────────

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

export function documentItem(document: Document) {
  const { progress, receipt } = document;
  return {
    id: document.id,
    user_id: document.userId,
    session_id: document.sessionId,
    external_id: document.externalId,
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

/** What a batch says of a document, and the whole answer where nobody waits for it. */
export function documentOutcomeItem({ document, outcome, jobId }: DocumentReply) {
  return { document_id: document.id, job_id: jobId, state: document.state, outcome };
}

/** The document with what OpenMemory's clients look for beside it: the root, the count of its chunks, their tokens. */
export function ingestedItem(document: Document, { outcome, jobId, token }: DocumentReply) {
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

/** Where a hit stands in its document. */
export function provenanceItem(provenance: Provenance) {
  return {
    document_id: provenance.documentId,
    title: provenance.title,
    file_name: provenance.fileName,
    url: provenance.url,
    format: provenance.format,
    sha256: provenance.sha256,
    ...placeItem(provenance),
    chunks: provenance.chunks,
    ingested_at: provenance.ingestedAt,
  };
}

export function chunkItem({ memoryId, provenance, tokens }: DocumentChunk) {
  return { memory_id: memoryId, ...placeItem(provenance), tokens };
}

function placeItem({ chunk, startOffset, endOffset, pageFrom, pageTo, headingPath }: Provenance) {
  return {
    chunk,
    start_offset: startOffset,
    end_offset: endOffset,
    page_from: pageFrom,
    page_to: pageTo,
    heading_path: headingPath,
  };
}

/** How far a change of the embedding model is. */
export function reembedItem(status: ReembedStatus) {
  const { state, phase, live, configured, done, total, failed, ratePerSecond, remainingMs, estimate, error } = status;
  return {
    ...{ state, phase, live, configured, done, total, failed },
    rate_per_second: ratePerSecond,
    remaining_ms: remainingMs,
    estimate,
    error,
  };
}
