import type { KeptCandidate, RecallRecord } from '../types.ts';
import type { Fit } from './candidate.ts';
import { rankShare } from './fuse.ts';
import { relevance } from './score.ts';

/** Tells whether both words and vectors decided about a recall, so that their shares can be changed afterwards. */
export function isFused({ scoring }: Pick<RecallRecord, 'scoring'>): boolean {
  return scoring.vectorWeight > 0 && scoring.vectorWeight < 1;
}

/**
 * Measures the kept candidates of a recall as another share of the vectors would have: similarity anew from the kept
 * fit, and the fused score from the kept ranks. The best of all candidates, by which they are measured, may not be
 * among those that were kept; it is taken to change as the best of these does. Which candidates there are does not
 * change, and a recall that words or vectors alone decided stays as it is.
 * @param vectorWeight share of the vectors, more than 0 and less than 1
 */
export function withVectorWeight(recall: RecallRecord, vectorWeight: number): RecallRecord {
  const { scoring, candidates, options } = recall;
  if (!isFused(recall) || vectorWeight === scoring.vectorWeight || candidates.length === 0) return recall;
  const relevanceAt = ({ fit }: KeptCandidate, weight: number) => relevance(fit as unknown as Fit, weight);
  const fusedAt = (candidate: KeptCandidate, weight: number) => fusedBy(candidate, scoring.vectorWeight, weight);
  /** Change of the best value of any candidate. */
  const changeOf = (valueAt: (candidate: KeptCandidate, weight: number) => number) => {
    const [before, after] = [scoring.vectorWeight, vectorWeight].map((weight) =>
      Math.max(Number.MIN_VALUE, ...candidates.map((candidate) => valueAt(candidate, weight))),
    ) as [number, number];
    return before === Number.MIN_VALUE ? 1 : after / before;
  };
  const bestRelevance = options.similarity === 'absolute' ? 1 : scoring.bestRelevance * changeOf(relevanceAt);
  const bestFused = scoring.bestFused * changeOf(fusedAt);
  return {
    ...recall,
    scoring: { ...scoring, vectorWeight, bestRelevance, bestFused },
    candidates: candidates.map((candidate) => {
      const { features } = candidate;
      const similarity = Math.min(1, relevanceAt(candidate, vectorWeight) / bestRelevance);
      const activation = Math.max(features.waypoint, fusedAt(candidate, vectorWeight) / bestFused);
      return { ...candidate, features: { ...features, similarity, activation } };
    }),
  };
}

/** Computes a fused score by another share of the vectors: what is not from their list is from the lists of words. */
function fusedBy({ fused, dense }: KeptCandidate, from: number, to: number): number {
  if (fused === null) return 0;
  const near = dense === null ? 0 : rankShare(dense.rank);
  return ((fused.score - from * near) * (1 - to)) / (1 - from) + to * near;
}
