import type {
  LoggedCandidate,
  Memory,
  MemoryQuery,
  Outcome,
  QueryResult,
  RecallHead,
  RetrievalOptions,
} from '../types.ts';
import { encodeCandidate } from '../store/logged-candidates.ts';
import type { RecallToKeep } from '../store/recalls.ts';
import { VERSION } from '../version.ts';
import type { Arrival, Candidate } from './candidate.ts';
import { scopeSize } from './plan.ts';
import type { StageResults } from './stage-results.ts';

/**
 * Greatest number of candidates that are stored with a recall in addition to its hits: the best candidates that were
 * dropped.
 */
const MAX_CUT = 3;
/** Greatest length of a filter that is stored with a recall, as JSON (UTF-16 code units). */
const MAX_FILTER_LENGTH = 16 * 1024;

/**
 * Collects what the recall log stores of a recall (an answered query), so that the recall can be inspected and scored
 * again later. The text of the question is stored, the texts of memories are not. If the filter takes more than 16 Ki
 * code units as JSON, question and filter are withheld; of the filter, only the tags within which the caller's key
 * reads stay, with users and sessions if these are short enough.
 * @param request the query before defaults are filled in
 * @param model the model whose vectors took part; stored as null if the recall used no vectors
 */
export function keepRecall(
  recall: StageResults,
  answer: QueryResult,
  {
    request,
    defaults,
    model,
  }: {
    readonly request: MemoryQuery;
    readonly defaults: RetrievalOptions;
    readonly model: RecallHead['model'];
  },
): RecallToKeep {
  const { question, filter, questionKept } = toKeep(request);
  const asked = { ...request, query: undefined, filter: undefined };
  const options = { ...recall.query, query: undefined, filter: undefined };
  const { profile, weights, vectorWeight, bestRelevance, bestFused } = recall.scoring;
  const hits = recall.packing.packed.map(({ candidate, memory }, place) =>
    toLoggedCandidate(recall, candidate, { outcome: 'returned', hit: toLoggedHit(answer.hits[place]!, memory) }),
  );
  const isHit = new Set(hits.map(({ memoryNo }) => memoryNo));
  const others = recall.candidates.filter(({ row }) => !isHit.has(row.memoryNo));
  const outcomes: Partial<Record<Outcome, number>> = { returned: hits.length };
  for (const { row } of others) {
    const outcome = outcomeOf(recall, row.memoryNo);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
  const cut = others
    .slice(0, MAX_CUT)
    .map((candidate) => toLoggedCandidate(recall, candidate, { outcome: outcomeOf(recall, candidate.row.memoryNo) }));
  const best = recall.candidates.reduce<Candidate | undefined>(
    (most, candidate) => (most === undefined || candidate.rawScore > most.rawScore ? candidate : most),
    undefined,
  );
  const head: RecallHead = {
    recallId: answer.recallId,
    at: recall.now,
    question,
    questionKept,
    filter,
    request: asked,
    defaults,
    options,
    scoring: { profile, weights, vectorWeight, bestRelevance, bestFused },
    confidence: recall.confidence,
    scope: scopeSize(recall.plan),
    floorActed: recall.floor?.acted ?? true,
    model: recall.vectors.length === 0 ? null : model,
    version: VERSION,
    floor: recall.floor ?? null,
    cut: recall.cut ?? null,
    degradedReasons: answer.degradedReasons,
    outcomes,
    hitIds: hits.map(({ id }) => id),
    bestNo: best?.row.memoryNo ?? null,
  };
  return {
    recallId: head.recallId,
    at: head.at,
    asked: { userIds: request.filter.userIds, sessionIds: request.filter.sessionIds },
    head: JSON.stringify(head),
    candidates: [...hits, ...cut].map((candidate) => ({
      memoryNo: candidate.memoryNo,
      id: candidate.id,
      data: encodeCandidate(candidate),
    })),
    supersededNos: [...recall.replaced.keys()],
  };
}

/**
 * Returns the question and the filter as they are stored: both whole, or no question and a part of the filter if the
 * filter is longer than `MAX_FILTER_LENGTH`, since a question without its filter would ask for something else.
 */
function toKeep({ query: question, filter }: MemoryQuery): Pick<RecallHead, 'question' | 'filter' | 'questionKept'> {
  if (JSON.stringify(filter).length <= MAX_FILTER_LENGTH) return { question, filter, questionKept: 'whole' };
  const { userIds, sessionIds, withinTags } = filter;
  const named = { userIds, sessionIds, withinTags };
  const isShort = JSON.stringify(named).length <= MAX_FILTER_LENGTH;
  return { question: null, filter: isShort ? named : { withinTags }, questionKept: 'withheld' };
}

function outcomeOf({ packing, floored }: StageResults, memoryNo: number): Outcome {
  return packing.cut.get(memoryNo) ?? floored.cut.get(memoryNo) ?? 'beyond_k';
}

function toLoggedCandidate(
  { evidence }: StageResults,
  { row, fit, lexical, dense, fused, arrival, features, adjustments, rerank, rawScore, score }: Candidate,
  fate: Pick<LoggedCandidate, 'outcome' | 'hit'>,
): LoggedCandidate {
  return {
    memoryNo: row.memoryNo,
    id: row.id,
    ...fate,
    score,
    rawScore,
    features,
    adjustments,
    rerank,
    lexical: lexical && { rank: lexical.rank, bm25: lexical.item.bm25, coverage: lexical.item.coverage },
    dense: dense && { rank: dense.rank, similarity: dense.item.similarity, window: dense.item.window },
    fused: fused && { rank: fused.rank, score: fused.item.score },
    arrival: arrival && toLoggedArrival(arrival, fused === null ? (fate.hit?.path.at(-2) ?? null) : null),
    fit: { ...fit },
    held: evidence.heldBy.get(row.memoryNo) ?? null,
    isStrange: evidence.strange.has(row.memoryNo),
  };
}

function toLoggedArrival(
  { via, entity, weight, hops, activation }: Arrival,
  from: string | null,
): NonNullable<LoggedCandidate['arrival']> {
  return { from, via, ...(entity === undefined ? {} : { entity }), weight, hops, activation };
}

function toLoggedHit(
  { path, supersedes, similar }: QueryResult['hits'][number],
  memory: Memory,
): NonNullable<LoggedCandidate['hit']> {
  const { state, status, primarySector, sectors, sectorConfidence } = memory;
  const { salience, strength, decayLambda, accessCount, lastSeenAt } = memory;
  return {
    path,
    ...(supersedes === undefined ? {} : { supersedes }),
    ...(similar === undefined ? {} : { similar }),
    version: memory.version,
    state: {
      ...{ state, status, primarySector, sectors, sectorConfidence },
      ...{ salience, strength, decayLambda, accessCount, lastSeenAt },
    },
  };
}
