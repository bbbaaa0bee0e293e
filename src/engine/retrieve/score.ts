import { DAY_MS, decayed, STRENGTH_LAMBDA } from '../dynamics.ts';
import type { RankingRow } from '../store/search.ts';
import type { Adjustment, Features, MemoryStatus, Profile, Weights } from '../types.ts';
import type { Candidate, Findings, Fit } from './candidate.ts';

/**
 * The weights that a profile reads, with their defaults. OpenMemory gives similarity 0.6 and salience 0.2; as salience starts at 0.4 to 0.8 by the number of a
 * text's sectors, that much took .005 of nDCG@10 from the abstracts and .009 of recall@1 from the chats.
 */
export const PROFILE_WEIGHTS = {
  composite: { similarity: 0.7, salience: 0.1, recency: 0.1, waypoint: 0.1 },
  activation: { activation: 0.5, recency: 0.2, strength: 0.2, confidence: 0.1 },
  retention: { alpha: 0.3 },
  fusion: {},
} as const satisfies Record<Profile, Weights>;

const STATUS_FACTOR: Readonly<Record<MemoryStatus, number>> = {
  active: 1,
  superseded: 0.5,
  contradicted: 0.3,
  archived: 0.5,
};
const RECENCY_LAMBDA = 0.05;
/** Retention never falls under this: what was not seen for years can still be recalled. */
export const RETENTION_FLOOR = 0.02;

/** What turns findings into scores, the same for all candidates of a query. */
export interface Scoring {
  readonly profile: Profile;
  /** Those of the profile, complete. */
  readonly weights: Weights;
  readonly vectorWeight: number;
  /** The best relevance of any candidate, above 0. */
  readonly bestRelevance: number;
  /** The best fused score of any candidate, above 0. */
  readonly bestFused: number;
  readonly now: number;
}

/**
 * Words and vectors as one number: their mean, weighed as in rank fusion. A convex combination keeps how far apart two
 * memories are, which ranks lose (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023).
 */
export function relevance({ coverage, cosine }: Fit, vectorWeight: number): number {
  return cosine === null ? coverage : (1 - vectorWeight) * coverage + vectorWeight * Math.max(0, cosine);
}

export function scoreCandidate(row: RankingRow, findings: Findings, scoring: Scoring): Candidate {
  const features = featuresOf(row, findings, scoring);
  const adjustments: Adjustment[] = [];
  const factor = STATUS_FACTOR[row.status];
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
 * Similarity is relative to the best candidate, because 0.3 of salience and recency would otherwise bury good matches: with random
 * salience and age of a year, recall@10 on three sets fell by .10 to .13 with an absolute similarity, by .01 to .04 with a relative
 * one.
 */
export function featuresOf(row: RankingRow, { fit, fused, arrival }: Findings, scoring: Scoring): Features {
  const { vectorWeight, bestRelevance, bestFused, now } = scoring;
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
 * The formulas of the systems Cairn grew from: OpenMemory (composite), OpenMem (activation), cognitive-memory (retention), memv and
 * open-mem (fusion).
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

/** The defaults of a profile with the caller's own in their place; weights that belong to other profiles are passed over. */
export function weightsOf(profile: Profile, given: Weights = {}): Weights {
  const defaults: Weights = PROFILE_WEIGHTS[profile];
  return Object.fromEntries(
    Object.entries(defaults).map(([name, value]) => [name, given[name as keyof Weights] ?? value]),
  );
}
