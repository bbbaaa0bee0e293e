import type { Store } from '../store/open-store.ts';
import { matchingText } from '../store/word-index/matching-rows.ts';
import type { Hit, HitExplanation, QueryResult } from '../types.ts';
import type { Candidate } from './candidate.ts';
import type { QueryPlan } from './plan.ts';
import type { MemoryReader } from './memory-reader.ts';
import { render } from './prompt.ts';
import type { StageResults } from './stage-results.ts';
import { surroundingsOf } from './surroundings.ts';

/**
 * Makes the answer for the caller: the hits with the memories around them (neighbours, sources) and, for any format but
 * `json`, the answer as text.
 * @param reader reads memories in their present state, or in the recorded state that the query asks for
 */
export function present(
  store: Store,
  recall: StageResults,
  reader: MemoryReader,
): Pick<QueryResult, 'hits' | 'isCut' | 'bestNeeds' | 'episodes' | 'rendered'> {
  const { format = 'json', tokenBudget } = recall.query;
  const { isFull, bestNeeds } = recall.packing;
  const { around, episodes } = surroundingsOf(store, recall, reader);
  const hits = presentHits(store, recall).map((hit, place) => ({ ...hit, ...around[place] }));
  return {
    hits,
    ...(isFull ? { isCut: true } : {}),
    ...(bestNeeds === null ? {} : { bestNeeds }),
    ...(episodes === undefined ? {} : { episodes }),
    ...(format === 'json' ? {} : { rendered: render({ hits, episodes, bestNeeds }, format, tokenBudget) }),
  };
}

/** Greatest number of near-duplicates whose ids are listed with a hit; the hit's `count` includes all of them. */
const MAX_SIMILAR_IDS = 20;

/** Makes the hits, each with the path of links that led to it. */
function presentHits(store: Store, recall: StageResults): Hit[] {
  const { packing, plan, query } = recall;
  const memoryNos = packing.packed.map(({ candidate }) => candidate.row.memoryNo);
  const ids = idsOf(recall);
  const terms = query.explain ? matchedTerms(store, plan, memoryNos) : new Map<number, string[]>();
  return packing.packed.map(({ candidate, memory, similar }) => ({
    memory,
    score: candidate.score,
    rawScore: candidate.rawScore,
    path: pathTo(candidate, ids),
    ...(candidate.supersedes === undefined ? {} : { supersedes: candidate.supersedes }),
    ...(similar.length === 0 ? {} : { similar: { count: similar.length, ids: similar.slice(0, MAX_SIMILAR_IDS) } }),
    ...(query.explain
      ? { explain: explainHit(recall, candidate, { ids, terms: terms.get(candidate.row.memoryNo) ?? [] }) }
      : {}),
  }));
}

/**
 * Lists the ids of the memories on the path of links from the direct hit to this memory, which comes last. The list has
 * only this memory's id for a direct hit, for a memory reached from an entity, and if another memory of the path was
 * erased meanwhile, as may happen while a language model answers.
 */
function pathTo({ row, fused, arrival }: Candidate, ids: ReadonlyMap<number, string>): string[] {
  if (fused !== null || arrival === null) return [row.id];
  const before = arrival.path.map((memoryNo) => ids.get(memoryNo));
  return before.every((id) => id !== undefined) ? [...before, row.id] : [row.id];
}

function idsOf({ packing, plan }: StageResults): Map<number, string> {
  const hits = packing.packed.map(({ candidate: { row } }): [number, string] => [row.memoryNo, row.id]);
  const origins = packing.packed.flatMap(({ candidate }) => candidate.arrival?.path ?? []);
  const others = plan.rows.read([...new Set(origins)]).map(({ memoryNo, id }): [number, string] => [memoryNo, id]);
  return new Map([...hits, ...others]);
}

/**
 * Explains the score of a hit: what each stage found out about it.
 * @param ids ids of the memories on its path, by `memoryNo`
 * @param terms terms of the query that the hit contains
 */
export function explainHit(
  { scoring, confidence }: StageResults,
  { lexical, dense, fused, arrival, features, adjustments, rerank }: Candidate,
  { ids, terms }: { ids: ReadonlyMap<number, string>; terms: readonly string[] },
): HitExplanation {
  return {
    lexical: lexical && { rank: lexical.rank, bm25: lexical.item.bm25, coverage: lexical.item.coverage },
    dense: dense && { rank: dense.rank, similarity: dense.item.similarity, window: dense.item.window },
    fused: fused && { rank: fused.rank, score: fused.item.score },
    arrival: arrival && {
      from: arrival.from === null ? null : (ids.get(arrival.from) ?? null),
      via: arrival.via,
      ...(arrival.entity === undefined ? {} : { entity: arrival.entity }),
      weight: arrival.weight,
      hops: arrival.hops,
      activation: arrival.activation,
    },
    profile: scoring.profile,
    features,
    weights: scoring.weights,
    adjustments,
    rerank,
    confidence,
    terms,
  };
}

/**
 * Lists, by `memoryNo`, the terms of the query that each memory, or the memories before it in its session, contain,
 * each once, in the order of the query.
 */
function matchedTerms(store: Store, { terms }: QueryPlan, memoryNos: readonly number[]): Map<number, string[]> {
  const matched = new Map<number, string[]>(memoryNos.map((memoryNo) => [memoryNo, []]));
  for (const { text, words } of terms) {
    for (const memoryNo of matchingText(store, words, memoryNos)) {
      const held = matched.get(memoryNo)!;
      if (!held.includes(text)) held.push(text);
    }
  }
  return matched;
}
