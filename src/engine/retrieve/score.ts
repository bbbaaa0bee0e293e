import { DAY_MS, decayed, STRENGTH_LAMBDA } from '../dynamics.ts';
import type { RankingRow } from '../store/ranking-rows.ts';
import type { Adjustment, Features, Penalties, Profile, Similarity, Weights } from '../types.ts';
import type { Candidate, Findings, Fit } from './candidate.ts';

/**
 * The weights that each profile reads, with their defaults. OpenMemory gives similarity 0.6 and salience 0.2. Salience
 * starts at 0.4 to 0.8 by the number of a text's sectors, so the weights of OpenMemory took .005 of nDCG@10 from the
 * abstracts and .009 of recall@1 from the chats.
 */
export const PROFILE_WEIGHTS = {
  composite: { similarity: 0.7, salience: 0.1, recency: 0.1, waypoint: 0.1 },
  activation: { activation: 0.5, recency: 0.2, strength: 0.2, confidence: 0.1 },
  retention: { alpha: 0.3 },
  fusion: {},
} as const satisfies Record<Profile, Weights>;

/** Rate at which recency falls, per day since a memory was last seen. */
const RECENCY_LAMBDA = 0.05;
/** Least retention, so that a memory can still be recalled after years. */
const RETENTION_FLOOR = 0.02;

/** The values that turn findings into scores. All candidates of a query share them. */
export interface Scoring {
  readonly profile: Profile;
  /** The weights of the profile, none left out. */
  readonly weights: Weights;
  /** The weight of vectors against words, 0..1. */
  readonly vectorWeight: number;
  /** What the feature `similarity` is. */
  readonly similarity: Similarity;
  /** The factors on the raw score by status. */
  readonly penalties: Required<Penalties>;
  /** The best relevance of any candidate, above 0. */
  readonly bestRelevance: number;
  /** The best fused score of any candidate, above 0; 1 where neither words nor vectors found a memory. */
  readonly bestFused: number;
  /** Time of the query, Unix ms. */
  readonly now: number;
}

/**
 * Weight of the words that the question before a memory holds, beside the memory's own. An answer need not repeat the
 * words of its question: “Three times a week.”
 */
const ANSWER_WEIGHT = 0.5;

/**
 * The relevance of a memory by words and vectors: the mean of both, weighed as in rank fusion, or the joint fit where
 * there is one. A memory without a cosine counts by its coverage alone, and a cosine below 0 counts as 0. A convex
 * combination keeps the distance between two memories, which ranks lose (Bruch, Gai and Ingber, "An Analysis of Fusion
 * Functions for Hybrid Retrieval", TOIS 2023).
 */
export function relevance({ coverage, cosine, answers = 0, joint }: Fit, vectorWeight: number): number {
  if (joint !== undefined) return joint;
  const words = coverage + ANSWER_WEIGHT * answers;
  return cosine === null ? words : (1 - vectorWeight) * words + vectorWeight * Math.max(0, cosine);
}

/**
 * Makes a candidate of a memory: its features, and its raw score with the factor of its status. The calibrated `score`
 * is still 0.
 */
export function scoreCandidate(row: RankingRow, findings: Findings, scoring: Scoring): Candidate {
  const features = featuresOf(row, findings, scoring);
  const adjustments: Adjustment[] = [];
  const factor = row.status === 'active' ? 1 : scoring.penalties[row.status];
  if (factor !== 1) adjustments.push({ by: 'status', factor });
  return {
    ...findings,
    row,
    features,
    adjustments,
    rerank: null,
    rawScore: rawScoreOf(features, scoring) * factor,
    score: 0,
  };
}

/**
 * Computes the features of a memory. Similarity is relative to the best candidate unless the query asks otherwise,
 * because 0.3 of salience and recency would bury good matches: with random salience and age of a year, recall@10 on
 * three sets fell by .10 to .13 with an absolute similarity, by .01 to .04 with a relative one.
 */
export function featuresOf(row: RankingRow, { fit, fused, arrival }: Findings, scoring: Scoring): Features {
  const { vectorWeight, bestFused, now } = scoring;
  const bestRelevance = scoring.similarity === 'absolute' ? 1 : scoring.bestRelevance;
  const days = Math.max(0, now - row.lastSeenAt) / DAY_MS;
  const waypoint = arrival?.activation ?? 0;
  return {
    similarity: Math.min(1, relevance(fit, vectorWeight) / bestRelevance),
    activation: Math.max(waypoint, fused === null ? 0 : fused.item.score / bestFused),
    waypoint,
    salience: decayed({ value: row.salience, at: row.salienceAt }, row.decayLambda, now),
    strength: decayed({ value: row.strength, at: row.strengthAt }, STRENGTH_LAMBDA, now),
    recency: Math.exp(-RECENCY_LAMBDA * days),
    retention: Math.max(RETENTION_FLOOR, Math.exp(-row.decayLambda * days)),
    confidence: row.confidence,
  };
}

/**
 * Computes the raw score by the formula of the profile. The formulas are those of the systems that Cairn grew from:
 * OpenMemory (`composite`), OpenMem (`activation`), cognitive-memory (`retention`), memv and open-mem (`fusion`).
 */
export function rawScoreOf(features: Features, { profile, weights, bestFused }: Scoring): number {
  switch (profile) {
    case 'composite':
    case 'activation':
      return weightedSum(features, weights);
    case 'retention':
      return features.similarity * features.retention ** (weights.alpha ?? PROFILE_WEIGHTS.retention.alpha);
    case 'fusion':
      return features.activation * bestFused;
  }
}

function weightedSum(features: Features, weights: Weights): number {
  return Object.entries(weights).reduce((sum, [name, weight]) => sum + weight * features[name as keyof Features], 0);
}

/** Completes the given weights with the defaults of a profile. Weights of other profiles are ignored. */
export function weightsOf(profile: Profile, given: Weights = {}): Weights {
  const defaults: Weights = PROFILE_WEIGHTS[profile];
  return Object.fromEntries(
    Object.entries(defaults).map(([name, value]) => [name, given[name as keyof Weights] ?? value]),
  );
}
