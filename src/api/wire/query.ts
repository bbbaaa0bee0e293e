/** Translates queries and their answers between the engine's names and the field names of the API. */
import {
  charactersOf,
  DEFAULT_K,
  type AsOf,
  type Episode,
  type FloorReport,
  type Hit,
  type MemoryExplanation,
  type MemoryFilter,
  type MemoryQuery,
  type QueryResult,
  type RetrievalOptions,
} from '../../engine/index.ts';
import type { EpisodeItem, ExplanationItem, FloorItem, MatchItem, QueryReplyBody } from '../schemas/query-replies.ts';
import type { QueryBody, RetrievalBody, RetrievalItem } from '../schemas/query.ts';
import { provenanceItem } from './documents.ts';
import { storedMemoryItem } from './memories.ts';

export function toRetrievalOptions(body: RetrievalBody): RetrievalOptions {
  return {
    profile: body.profile ?? undefined,
    similarity: body.similarity ?? undefined,
    penalties: body.penalties ?? undefined,
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
    kRerank: body.k_rerank ?? undefined,
    minScore: body.min_score ?? undefined,
    relativeFloor: body.relative_floor ?? undefined,
    cut: body.cut ?? undefined,
    perDocument: body.per_document ?? undefined,
    collapseSimilar: body.collapse_similar ?? undefined,
    writerShare: body.writer_share ?? undefined,
  };
}

/**
 * Translates a tenant's defaults for queries. Only the options that were set have a value, so that a client can send
 * them back unchanged.
 */
export function retrievalItem(options: RetrievalOptions): RetrievalItem {
  return {
    profile: options.profile,
    similarity: options.similarity,
    penalties: options.penalties,
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
    k_rerank: options.kRerank,
    min_score: options.minScore,
    relative_floor: options.relativeFloor,
    cut: options.cut,
    per_document: options.perDocument,
    collapse_similar: options.collapseSimilar,
    writer_share: options.writerShare,
  };
}

/**
 * Translates the filters of a query or a list. If users or sectors are given in several fields, only those in all of
 * the fields count: if there are none, the list is empty and admits nothing. Of several bounds of a time range, the
 * narrowest counts. A field that was left out becomes undefined, and admits everything.
 */
export function toFilter(body: Pick<QueryBody, 'user_id' | 'filters' | 'startTime' | 'endTime'>): MemoryFilter {
  const filters = body.filters ?? {};
  return {
    userIds: intersection([only(body.user_id), only(filters.user_id), filters.users]),
    sessionIds: filters.sessions,
    sectors: intersection([only(filters.sector), filters.sectors]),
    types: filters.types,
    tags: filters.tags,
    statuses: filters.statuses,
    externalIds: filters.external_ids,
    namespace: filters.namespace ?? undefined,
    writtenBy: filters.written_by,
    documentIds: filters.documents,
    files: filters.files,
    minSalience: filters.min_salience ?? undefined,
    eventFrom: filters.event_time?.from,
    eventTo: filters.event_time?.to,
    createdFrom: largest([filters.created_at?.from, filters.startTime, body.startTime]),
    createdTo: smallest([filters.created_at?.to, inclusive(filters.endTime), inclusive(body.endTime)]),
    metadata: filters.metadata,
  };
}

/**
 * Translates the field `as_of`, the earlier time as of which a query is answered. A single time (Unix ms) selects what
 * was valid then. Undefined if the field was left out.
 */
export function toAsOf(asOf: QueryBody['as_of']): AsOf | undefined {
  return typeof asOf === 'number' ? { valid: asOf } : (asOf ?? undefined);
}

export function toQuery(body: QueryBody): MemoryQuery {
  const options = toRetrievalOptions(body);
  return {
    ...options,
    query: body.query,
    k: body.k ?? DEFAULT_K,
    filter: toFilter(body),
    minScore: options.minScore ?? body.filters?.min_score ?? undefined,
    tokenBudget: body.token_budget ?? undefined,
    deepRecall: body.deep_recall ?? undefined,
    include: body.include ?? undefined,
    asOf: toAsOf(body.as_of),
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
/**
 * Converts the end of a time range (Unix ms) by adding 1 ms, since OpenMemory's range includes its end and Cairn's does
 * not.
 */
const inclusive = (time: number | null | undefined) => (time == null ? undefined : time + 1);

function intersection<Value>(lists: readonly (readonly Value[] | undefined)[]): readonly Value[] | undefined {
  return lists.reduce(
    (common, list) => (common && list ? common.filter((value) => list.includes(value)) : (common ?? list)),
    undefined,
  );
}

/**
 * Makes the answer to a query: matches, or a text if the query's `format` asks for one.
 * @param tokenSatisfied whether the writes of the request's token were finished; undefined if it sent none
 */
export function queryItem(
  { query, format }: MemoryQuery,
  result: QueryResult,
  tokenSatisfied?: boolean,
): QueryReplyBody {
  const { hits, isCut, bestNeeds, episodes, rendered, floor, cut, trace } = result;
  return {
    query,
    ...(rendered === undefined || format === undefined || format === 'json'
      ? { matches: hits.map(matchItem), ...(episodes === undefined ? {} : { episodes: episodes.map(episodeItem) }) }
      : { format, text: rendered.text, tokens: rendered.tokens, ids: hits.map(({ memory }) => memory.id) }),
    ...degradation(result),
    recall_id: result.recallId,
    ...(floor === undefined ? {} : { floor: floorItem(floor) }),
    ...(cut === undefined ? {} : { cut: { mode: cut.mode, left_out: cut.leftOut } }),
    ...(tokenSatisfied === undefined ? {} : { token_satisfied: tokenSatisfied }),
    ...(trace === undefined ? {} : { trace }),
    ...(isCut === undefined ? {} : { truncated: isCut }),
    ...(bestNeeds === undefined ? {} : { best_needs: bestNeeds }),
  };
}

/**
 * Estimates the memory that an answer takes, with its memories and what it says of their documents, in bytes: two for
 * each character.
 */
export function answerBytes({
  hits,
  rendered,
  episodes = [],
}: Pick<QueryResult, 'hits'> & Partial<Pick<QueryResult, 'rendered' | 'episodes'>>): number {
  let characters = rendered?.text.length ?? 0;
  for (const { memory, neighbours, sources = [], document } of hits) {
    const around = neighbours === undefined ? sources : [...neighbours.before, ...neighbours.after, ...sources];
    for (const each of [memory, ...around]) characters += charactersOf(each);
    if (document !== undefined) characters += JSON.stringify(document).length;
  }
  for (const { memory } of episodes) characters += memory === null ? 0 : charactersOf(memory);
  return characters * 2;
}

export function degradation({ degraded, degradedReasons }: Pick<QueryResult, 'degraded' | 'degradedReasons'>) {
  return { degraded, ...(degraded ? { degraded_reasons: degradedReasons } : {}) };
}

export function floorItem({ minScore, acted, reason, below, bestBelow }: FloorReport): FloorItem {
  return { min_score: minScore, acted, ...(reason === undefined ? {} : { reason }), below, best_below: bestBelow };
}

/** Translates a match. Fields that it does not have are left out. */
export function matchItem(hit: Hit): MatchItem {
  const { supersedes, similar, neighbours, sources, document, explain } = hit;
  return {
    ...storedMemoryItem(hit.memory),
    score: hit.score,
    raw_score: hit.rawScore,
    path: hit.path,
    ...(supersedes === undefined ? {} : { supersedes }),
    ...(similar === undefined ? {} : { similar }),
    ...(neighbours === undefined
      ? {}
      : {
          neighbours: {
            before: neighbours.before.map(storedMemoryItem),
            after: neighbours.after.map(storedMemoryItem),
          },
        }),
    ...(sources === undefined ? {} : { sources: sources.map(storedMemoryItem) }),
    ...(document === undefined ? {} : { document: provenanceItem(document) }),
    ...(explain === undefined ? {} : { explain }),
  };
}

function episodeItem({ kind, id, userId, title, memory, memoryIds }: Episode): EpisodeItem {
  return { kind, id, user_id: userId, title, memory: memory && storedMemoryItem(memory), memory_ids: memoryIds };
}

export function explanationItem(explanation: MemoryExplanation): ExplanationItem {
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
    ...degradation(explanation),
    ...(explanation.notTried.length === 0 ? {} : { not_tried: explanation.notTried }),
    trace: explanation.trace,
  };
}
