import { DAY_MS, decayed, STRENGTH_LAMBDA } from '../dynamics.ts';
import type { RankingRow } from '../store/ranking-rows.ts';
import type { Adjustment, Features, Penalties, Profile, Similarity, Weights } from '../types.ts';
import type { Candidate, Findings, Fit } from './candidate.ts';

/**
 * The weights that each scoring profile uses, with their default values. OpenMemory gives similarity 0.6 and salience
 * 0.2. But salience starts at 0.4 to 0.8, by the number of sectors that a text has, which says little about a query:
 * OpenMemory's weights cost .005 of nDCG@10 on the abstracts and .009 of recall@1 on the chats.
 */
export const PROFILE_WEIGHTS = {
  composite: { similarity: 0.7, salience: 0.1, recency: 0.1, waypoint: 0.1 },
  activation: { activation: 0.5, recency: 0.2, strength: 0.2, confidence: 0.1 },
  retention: { alpha: 0.3 },
  fusion: {},
} as const satisfies Record<Profile, Weights>;

/**
 * Rate of the exponential decay of recency, per day since a memory was last added, returned or reinforced
 * (`lastSeenAt`).
 */
const RECENCY_LAMBDA = 0.05;
/** Least value of the feature `retention`, so that a memory can still be recalled after years. */
const RETENTION_FLOOR = 0.02;

/** Values that are the same for all candidates of a query in scoring. */
export interface Scoring {
  readonly profile: Profile;
  /** The weights of the profile; none is missing. */
  readonly weights: Weights;
  /** Weight of vectors against words, 0..1. */
  readonly vectorWeight: number;
  /** How the feature `similarity` is made; see `Similarity`. */
  readonly similarity: Similarity;
  /**
   * Factors on the raw score, 0..1, of superseded, contradicted and archived memories, of the weaker of two that
   * contradict each other, and of the sources of a consolidation.
   */
  readonly penalties: Required<Penalties>;
  /** Best result of `relevance` of any candidate, above 0. */
  readonly bestRelevance: number;
  /** Best fused score of any candidate, above 0; 1 if neither words nor vectors found a memory. */
  readonly bestFused: number;
  /** Time of the query, Unix ms. */
  readonly now: number;
}

/** The values that the formula of a profile uses in addition to the features. */
export type Formula = Pick<Scoring, 'profile' | 'weights' | 'bestFused'>;

/**
 * Weight of the query's words in the question before a memory, compared with those in the memory itself, since an
 * answer need not repeat the words of its question: “Three times a week.”
 */
const ANSWER_WEIGHT = 0.5;

/**
 * Computes the relevance of a memory by words and vectors: the mean of the value by words and the cosine, weighted with
 * `vectorWeight`. The value by words is `Fit.coverage` plus half of `Fit.answers`. A memory without a cosine has the
 * value by words as its relevance, and a cosine below 0 counts as 0. If `Fit.joint` is set, it is returned instead. The
 * result is 0 or more; it has no upper bound, as coverage has none. A convex combination keeps the distance between two
 * memories, which ranks lose (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS
 * 2023).
 */
export function relevance({ coverage, cosine, answers = 0, joint }: Fit, vectorWeight: number): number {
  if (joint !== undefined) return joint;
  const words = coverage + ANSWER_WEIGHT * answers;
  return cosine === null ? words : (1 - vectorWeight) * words + vectorWeight * Math.max(0, cosine);
}

/**
 * Makes a candidate from a memory and what the searches found out about it: its features and its raw score, which
 * includes the factor of its status. Its calibrated `score` is 0 until `calibrate` sets it.
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
 * Computes the features of a memory. By default its relevance is divided by that of the best candidate, since otherwise
 * salience and recency, with a weight of 0.3, would outweigh good matches: with random salience and an age of up to a
 * year, recall@10 on three sets fell by .10 to .13 with an absolute similarity, by .01 to .04 with a relative one.
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
 * Computes the raw score (before calibration) by the formula of the profile. Each formula is that of a memory system:
 * OpenMemory (`composite`), OpenMem (`activation`), cognitive-memory (`retention`), memv and open-mem (`fusion`).
 */
export function rawScoreOf(features: Features, { profile, weights, bestFused }: Formula): number {
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

/**
 * Returns the weights of a profile: the given ones, and defaults for those left out. Given weights that the profile
 * does not use are dropped.
 */
export function weightsOf(profile: Profile, given: Weights = {}): Weights {
  const defaults: Weights = PROFILE_WEIGHTS[profile];
  return Object.fromEntries(
    Object.entries(defaults).map(([name, value]) => [name, given[name as keyof Weights] ?? value]),
  );
}
