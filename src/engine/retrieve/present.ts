import type { Store } from '../store/open-store.ts';
import { readRankingRows } from '../store/search.ts';
import { matchingText } from '../store/word-index/matching-rows.ts';
import type { Hit, HitExplanation, Memory, QueryResult } from '../types.ts';
import type { Candidate } from './candidate.ts';
import type { QueryPlan } from './plan.ts';
import { render } from './prompt.ts';
import type { Recall } from './recall.ts';
import { surroundingsOf } from './surroundings.ts';

/**
 * The answer as a caller sees it: the hits with what stands around them and, where asked for, as text.
 * @param read memories by number, as they are or as they were at the moment looked back to
 */
export function present(
  store: Store,
  recall: Recall,
  read: (seqs: readonly number[]) => ReadonlyMap<number, Memory>,
): Pick<QueryResult, 'hits' | 'episodes' | 'rendered'> {
  const { format = 'json', tokenBudget } = recall.query;
  const { around, episodes } = surroundingsOf(store, recall, read);
  const hits = presentHits(store, recall).map((hit, place) => ({ ...hit, ...around[place] }));
  return {
    hits,
    ...(episodes === undefined ? {} : { episodes }),
    ...(format === 'json' ? {} : { rendered: render({ hits, episodes }, format, tokenBudget) }),
  };
}

/** The hits with the path that led to each. */
function presentHits(store: Store, recall: Recall): Hit[] {
  const { packing, plan, query } = recall;
  const seqs = packing.packed.map(({ candidate }) => candidate.row.seq);
  const ids = idsOf(store, recall);
  const terms = query.explain ? matchedTerms(store, plan, seqs) : new Map<number, string[]>();
  return packing.packed.map(({ candidate, memory }) => ({
    memory,
    score: candidate.score,
    rawScore: candidate.rawScore,
    path: pathTo(candidate, ids),
    ...(candidate.supersedes === undefined ? {} : { supersedes: candidate.supersedes }),
    ...(query.explain
      ? { explain: explainHit(recall, candidate, { ids, terms: terms.get(candidate.row.seq) ?? [] }) }
      : {}),
  }));
}

/**
 * Ids from the direct hit to this memory; only its own where one of them was erased, as may happen while a language model is waited
 * for.
 */
function pathTo({ row, fused, arrival }: Candidate, ids: ReadonlyMap<number, string>): string[] {
  if (fused !== null || arrival === null) return [row.id];
  const before = arrival.path.map((seq) => ids.get(seq));
  return before.every((id) => id !== undefined) ? [...before, row.id] : [row.id];
}

function idsOf(store: Store, { packing }: Recall): Map<number, string> {
  const known = packing.packed.map(({ candidate: { row } }): [number, string] => [row.seq, row.id]);
  const origins = packing.packed.flatMap(({ candidate }) => candidate.arrival?.path ?? []);
  const others = readRankingRows(store, [...new Set(origins)]).map(({ seq, id }): [number, string] => [seq, id]);
  return new Map([...known, ...others]);
}

export function explainHit(
  { scoring, confidence }: Recall,
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

/** The terms of the query that each memory holds, its context included, in the order of the query. */
function matchedTerms(store: Store, { terms }: QueryPlan, seqs: readonly number[]): Map<number, string[]> {
  const matched = new Map<number, string[]>(seqs.map((seq) => [seq, []]));
  for (const { text, words } of terms) {
    for (const seq of matchingText(store, words, seqs)) {
      const held = matched.get(seq)!;
      if (!held.includes(text)) held.push(text);
    }
  }
  return matched;
}
