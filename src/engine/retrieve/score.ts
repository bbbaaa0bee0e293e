import { DAY_MS, decayed } from '../dynamics.ts';
import type { RankingRow } from '../store/search.ts';
import type { CompositeWeights } from '../types.ts';

/** What the stages found out about a memory; each in 0..1. */
export interface Features {
  readonly similarity: number;
  readonly salience: number;
  readonly recency: number;
  readonly waypoint: number;
}

export interface Scored {
  readonly row: RankingRow;
  readonly features: Features;
  /** Of the query, the same for all its candidates: see `confidenceOf`. */
  readonly confidence: number;
  readonly rawScore: number;
  /** 0..1 */
  readonly score: number;
}

/** How well a memory fits the query, before anything else is known of it. */
export interface Fit {
  /** Share of the query's words, by rarity; 0.. with 1 for all of them. */
  readonly coverage: number;
  /** -1..1; null where the query or the memory has no vector. */
  readonly cosine: number | null;
}

export const COMPOSITE_WEIGHTS: CompositeWeights = { similarity: 0.6, salience: 0.2, recency: 0.1, waypoint: 0.1 };
const RECENCY_LAMBDA = 0.05;

/**
 * Words and vectors as one number: their mean, weighed as in rank fusion. A convex combination keeps how far apart two
 * memories are, which ranks lose (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023).
 */
export function relevance({ coverage, cosine }: Fit, vectorWeight: number): number {
  return cosine === null ? coverage : (1 - vectorWeight) * coverage + vectorWeight * Math.max(0, cosine);
}

/**
 * How sure the best answer is, 0..1: the most of the query that any candidate covers, by words or by meaning. It scales all
 * scores of a query alike, so that a least score works although similarity is relative.
 */
export function confidenceOf(fits: Iterable<Fit>): number {
  let best = 0;
  for (const { coverage, cosine } of fits) best = Math.max(best, coverage, cosine ?? 0);
  return Math.min(1, best);
}

/**
 * @param similarity relevance as a share of the best candidate's. Relative, because 0.3 of salience and recency would
 *        otherwise bury good matches: with random salience and age of a year, recall@10 on three sets fell by .10 to .13 with
 *        an absolute similarity, by .01 to .04 with a relative one.
 */
export function featuresOf(
  row: RankingRow,
  { similarity, waypoint, now }: { similarity: number; waypoint: number; now: number },
): Features {
  return {
    similarity,
    salience: decayed({ value: row.salience, at: row.salienceAt }, row.decayLambda, now),
    recency: Math.exp((-RECENCY_LAMBDA * Math.max(0, now - row.lastSeenAt)) / DAY_MS),
    waypoint,
  };
}

/** OpenMemory's formula, a weighted sum of the features. `score` is its share of the most it could be, times the confidence. */
export function scoreComposite(
  row: RankingRow,
  features: Features,
  { weights, confidence }: { weights: CompositeWeights; confidence: number },
): Scored {
  const rawScore =
    weights.similarity * features.similarity +
    weights.salience * features.salience +
    weights.recency * features.recency +
    weights.waypoint * features.waypoint;
  const most = weights.similarity + weights.salience + weights.recency + weights.waypoint;
  return {
    row,
    features,
    confidence,
    rawScore,
    score: most > 0 ? Math.min(1, Math.max(0, (confidence * rawScore) / most)) : 0,
  };
}

/** Best first; ties by id, which is older first. */
export function byScore(a: Scored, b: Scored): number {
  return b.rawScore - a.rawScore || (a.row.id < b.row.id ? -1 : 1);
}
