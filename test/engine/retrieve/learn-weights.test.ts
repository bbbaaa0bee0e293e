import { describe, expect, test } from 'vitest';
import { createRandom } from '../../../src/engine/random.ts';
import { learnWeights, MIN_JUDGED_RECALLS } from '../../../src/engine/retrieve/learn-weights.ts';
import { rawScoreOf, weightsOf } from '../../../src/engine/retrieve/score.ts';
import type { FeedbackVerdict, KeptCandidate, RecallRecord, Weights } from '../../../src/engine/types.ts';

const PRESENT = { weights: weightsOf('composite'), minScore: 0 };

type Verdict = (candidate: KeptCandidate, random: () => number) => FeedbackVerdict;

/** Recalls of ten matches with random features, on which somebody gave feedback. */
function judged(count: number, verdictOf: Verdict, seed = 1): RecallRecord[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, (_, index) => {
    const candidates = Array.from({ length: 10 }, (_, place) => candidateOf(index * 10 + place, random));
    const feedback = candidates.map((candidate) => ({
      memoryId: candidate.id,
      verdict: verdictOf(candidate, random),
      at: index,
    }));
    const head = {
      recallId: `recall ${index}`,
      at: index,
      scoring: { profile: 'composite', weights: PRESENT.weights, vectorWeight: 0, bestRelevance: 1, bestFused: 1 },
      options: { k: 10 },
      confidence: 1,
      scope: 1_000,
      floorActed: true,
      bestNo: candidates[0]!.memoryNo,
    };
    return { ...head, candidates, feedback, missing: [] } as unknown as RecallRecord;
  });
}

function candidateOf(memoryNo: number, random: () => number): KeptCandidate {
  const features = {
    similarity: 0.6 + 0.4 * random(),
    activation: random(),
    waypoint: random() < 0.2 ? random() : 0,
    salience: random(),
    strength: 1,
    recency: random(),
    retention: 1,
    confidence: 1,
  };
  const rawScore = rawScoreOf(features, { profile: 'composite', weights: PRESENT.weights, bestFused: 1 });
  const kept = { memoryNo, id: `memory ${memoryNo}`, outcome: 'returned', score: rawScore, rawScore, features };
  return { ...kept, adjustments: [], rerank: null, held: 0.5, isStrange: false, fit: {} } as unknown as KeptCandidate;
}

/** Says `used` of a match whose score by the true weights is above a threshold. */
const byTruth =
  (weights: Weights, threshold: number): Verdict =>
  ({ features }) =>
    rawScoreOf(features, { profile: 'composite', weights, bestFused: 1 }) > threshold ? 'used' : 'useless';

describe('where feedback follows other weights', () => {
  const truth = { similarity: 0.5, salience: 0, recency: 0.4, waypoint: 0.1 };

  test('they are found, and are better on later recalls', () => {
    const found = learnWeights(judged(150, byTruth(truth, 0.65)), 'composite', PRESENT);
    if ('tooFew' in found) throw new Error('too few');
    const { better, report } = found;
    expect([report.learnedFrom, report.heldOut, report.heldOutFrom]).toEqual([104, 44, 105]);
    expect(report.after.order).toBeGreaterThan(report.before.order + 0.1);
    expect(report.after.order).toBeGreaterThan(0.95);
    const { recency, salience, similarity } = better!.weights as Required<Weights>;
    expect(recency / similarity).toBeGreaterThan(0.5); // It is 0.8 in truth, and 0.14 at first.
    expect(salience).toBeLessThan(0.05);
  });

  test('they are found in spite of one verdict in five that is wrong', () => {
    const follow = byTruth(truth, 0.65);
    const noisy: Verdict = (candidate, random) => {
      const verdict = follow(candidate, random);
      return random() < 0.2 ? (verdict === 'used' ? 'wrong' : 'used') : verdict;
    };
    const found = learnWeights(judged(200, noisy), 'composite', PRESENT);
    if ('tooFew' in found) throw new Error('too few');
    expect(found.better!.weights.recency).toBeGreaterThan(0.2);
    expect(found.report.chance).toBeLessThanOrEqual(0.01);
  });

  test('they stay within their ranges, whatever feedback says', () => {
    const extreme = { similarity: 0, salience: 0, recency: 1, waypoint: 0 };
    const found = learnWeights(judged(300, byTruth(extreme, 0.5)), 'composite', PRESENT);
    if ('tooFew' in found) throw new Error('too few');
    expect(found.better!.weights.recency).toBeLessThanOrEqual(0.4);
    expect(found.better!.weights.similarity).toBeGreaterThanOrEqual(0.4);
  });

  test('the same recalls give the same weights, in any order', () => {
    const recalls = judged(80, byTruth(truth, 0.65));
    expect(learnWeights(recalls.toReversed(), 'composite', PRESENT)).toEqual(
      learnWeights(recalls, 'composite', PRESENT),
    );
  });
});

describe('nothing is proposed', () => {
  test('where feedback is noise: in 30 trials at most one', () => {
    const noise: Verdict = (_, random) => (random() < 0.5 ? 'used' : 'useless');
    const proposals = Array.from({ length: 30 }, (_, seed) => {
      const found = learnWeights(judged(100, noise, seed), 'composite', PRESENT);
      return 'tooFew' in found || found.better !== null;
    });
    expect(proposals.filter(Boolean).length).toBeLessThanOrEqual(1);
  });

  test('where feedback agrees with the present weights', () => {
    const found = learnWeights(judged(100, byTruth(PRESENT.weights, 0.7)), 'composite', PRESENT);
    expect(found).toMatchObject({ better: null });
  });

  test('of too few recalls, of another profile, or of one kind of verdict', () => {
    const follow = byTruth(PRESENT.weights, 0.7);
    expect(learnWeights(judged(20, follow), 'composite', PRESENT)).toEqual({ tooFew: 20 });
    expect(learnWeights(judged(100, follow), 'activation', PRESENT)).toEqual({ tooFew: 0 });
    expect(
      learnWeights(
        judged(100, () => 'used'),
        'composite',
        PRESENT,
      ),
    ).toEqual({ tooFew: 0 });
    expect(MIN_JUDGED_RECALLS).toBe(40);
  });
});
