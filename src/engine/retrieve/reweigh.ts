import type { LoggedCandidate, RecallRecord } from '../types.ts';
import type { Fit } from './candidate.ts';
import { rankShare } from './fuse.ts';
import { relevance } from './raw-score.ts';

/**
 * Tells whether both words and vectors had a weight in a recall, so that it can be scored again with another weight.
 */
export function isFused({ scoring }: Pick<RecallRecord, 'scoring'>): boolean {
  return scoring.vectorWeight > 0 && scoring.vectorWeight < 1;
}

/**
 * Computes what the stored candidates of a recall (an answered query) would be with another weight of vectors: the
 * features similarity and activation, from the stored fit and the stored ranks. Both are relative to the best of all
 * candidates. The best candidate may not be stored, so its value is assumed to change by the same factor as the best
 * value among the stored candidates. No candidate is added or removed. A recall in which words or vectors had no weight
 * is returned unchanged.
 * @param vectorWeight weight of vectors against words, more than 0 and less than 1
 */
export function withVectorWeight(recall: RecallRecord, vectorWeight: number): RecallRecord {
  const { scoring, candidates, options } = recall;
  if (!isFused(recall) || vectorWeight === scoring.vectorWeight || candidates.length === 0) return recall;
  const relevanceAt = ({ fit }: LoggedCandidate, weight: number) => relevance(fit as unknown as Fit, weight);
  const fusedAt = (candidate: LoggedCandidate, weight: number) => fusedBy(candidate, scoring.vectorWeight, weight);
  /** Returns the factor by which the best value among the stored candidates changes with the new weight. */
  const changeOf = (valueAt: (candidate: LoggedCandidate, weight: number) => number) => {
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

/**
 * Computes the fused score of a candidate with another weight of vectors. The part of the stored score that does not
 * come from the list of vectors comes from the lists of words. It is 0 for a memory that was in no list.
 * @param from the weight of vectors in the recall
 * @param to the new weight of vectors
 */
function fusedBy({ fused, dense }: LoggedCandidate, from: number, to: number): number {
  if (fused === null) return 0;
  const near = dense === null ? 0 : rankShare(dense.rank);
  return ((fused.score - from * near) * (1 - to)) / (1 - from) + to * near;
}
