/** Translates recalls between the engine's names and the field names of the API. */
import type {
  LoggedCandidate,
  MemoryFilter,
  RecallFeedback,
  RecallPage,
  Replay,
  ReplayOptions,
  ShownRecall,
} from '../../engine/index.ts';
import type { RecalledItem, RecallItem, RecallListReply, ReplayBody, ReplayReplyItem } from '../schemas/recalls.ts';
import { degradation, floorItem, matchItem, retrievalItem, toFilter, toQuery } from './query.ts';

export function recallItem(recall: ShownRecall): RecallItem {
  const { scoring, floor, cut, degradedReasons, candidates } = recall;
  return {
    recall_id: recall.recallId,
    at: recall.at,
    query: recall.question,
    query_kept: recall.questionKept,
    filters: filterItem(recall.filter) as RecallItem['filters'],
    k: recall.options.k,
    options: definedOf(retrievalItem(recall.options)),
    profile: scoring.profile,
    weights: { ...scoring.weights },
    statistics: {
      vector_weight: scoring.vectorWeight,
      best_relevance: scoring.bestRelevance,
      best_fused: scoring.bestFused,
      confidence: recall.confidence,
      ...(recall.scope === undefined ? {} : { scope: Math.round(recall.scope) }),
    },
    model: recall.model,
    version: recall.version,
    matches: candidates.filter(({ hit }) => hit !== undefined).map(candidateItem),
    left_out: candidates.filter(({ hit }) => hit === undefined).map(candidateItem),
    outcomes: recall.outcomes,
    missing: recall.missing,
    ...degradation({ degraded: degradedReasons.length > 0, degradedReasons }),
    ...(floor === null ? {} : { floor: floorItem(floor) }),
    ...(cut === null ? {} : { cut: { mode: cut.mode, left_out: cut.leftOut } }),
    feedback: recall.feedback.map(feedbackItem),
  };
}

export function recallPageItem({ items, next }: RecallPage): RecallListReply {
  return {
    items: items.map(({ recallId, at, question, filter, scoring, hitIds, degradedReasons }) => ({
      recall_id: recallId,
      at,
      query: question,
      user_ids: [...(filter.userIds ?? [])],
      profile: scoring.profile,
      matches: hitIds.length,
      degraded: degradedReasons.length > 0,
    })),
    next,
  };
}

export const feedbackItem = ({ memoryId, verdict, at }: RecallFeedback) => ({ memory_id: memoryId, verdict, at });

function candidateItem(kept: LoggedCandidate): RecalledItem {
  const { hit } = kept;
  return {
    id: kept.id,
    outcome: kept.outcome,
    ...(hit === undefined ? {} : { version: hit.version }),
    score: kept.score,
    raw_score: kept.rawScore,
    features: kept.features,
    adjustments: kept.adjustments,
    lexical: kept.lexical,
    dense: kept.dense,
    fused: kept.fused,
    arrival: kept.arrival,
    rerank: kept.rerank,
    fit: kept.fit,
    held: kept.held,
    unrelated: kept.isStrange,
  };
}

/** Translates a filter into the fields of a query's `filters`. Conditions that are not set are left out. */
function filterItem(filter: MemoryFilter): object {
  const { eventFrom, eventTo, createdFrom, createdTo } = filter;
  const range = (from: number | undefined, to: number | undefined) =>
    from === undefined && to === undefined ? undefined : definedOf({ from, to });
  return definedOf({
    users: filter.userIds,
    sessions: filter.sessionIds,
    sectors: filter.sectors,
    types: filter.types,
    tags: filter.tags,
    statuses: filter.statuses,
    external_ids: filter.externalIds,
    written_by: filter.writtenBy,
    documents: filter.documentIds,
    files: filter.files,
    min_salience: filter.minSalience,
    event_time: range(eventFrom, eventTo),
    created_at: range(createdFrom, createdTo),
    metadata: filter.metadata,
    namespace: filter.namespace,
    value: filter.value,
  });
}

const definedOf = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/**
 * Translates a request to repeat a recall (an answered query). Only the fields that the request names replace values of
 * the original query. If it names a user, a filter or a time range, they replace all filters of the query together.
 */
export function toReplay({ state, query, ...body }: ReplayBody): ReplayOptions {
  const asked = toQuery({ ...body, query: query ?? '' });
  const hasFilter = [body.user_id, body.filters, body.startTime, body.endTime].some((given) => given != null);
  return {
    state,
    changes: {
      ...definedOf({ ...asked, k: undefined, query: undefined, filter: undefined }),
      ...(body.k == null ? {} : { k: asked.k }),
      ...(query == null ? {} : { query }),
      ...(hasFilter ? { filter: toFilter(body) } : {}),
    },
  };
}

export function replayItem(replay: Replay): ReplayReplyItem {
  const { degradedReasons } = replay;
  return {
    recall_id: replay.recallId,
    state: replay.state,
    asked_at: replay.askedAt,
    at: replay.at,
    query: replay.question,
    matches: replay.hits.map(matchItem),
    missing: replay.missing,
    not_kept: replay.notKept,
    moved: replay.moved.map(({ id, fromRank, toRank, fromScore, toScore, why }) => ({
      id,
      from_rank: fromRank,
      to_rank: toRank,
      from_score: fromScore,
      to_score: toScore,
      why,
    })),
    gone: replay.gone,
    new: replay.new,
    ...degradation({ degraded: degradedReasons.length > 0, degradedReasons }),
  };
}
