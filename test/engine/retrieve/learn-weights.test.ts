import { describe, expect, test } from 'vitest';
import { createRandom } from '../../../src/engine/random.ts';
import { learnWeights, MIN_JUDGED_RECALLS } from '../../../src/engine/retrieve/learn-weights.ts';
import { rawScoreOf, relevance, weightsOf } from '../../../src/engine/retrieve/raw-score.ts';
import type { FeedbackVerdict, LoggedCandidate, Profile, RecallRecord, Weights } from '../../../src/engine/types.ts';

const PRESENT = { weights: weightsOf('composite'), vectorWeight: null, minScore: 0 };

type Verdict = (candidate: LoggedCandidate, random: () => number) => FeedbackVerdict;

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

function candidateOf(memoryNo: number, random: () => number): LoggedCandidate {
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
  return { ...kept, adjustments: [], rerank: null, held: 0.5, isStrange: false, fit: {} } as unknown as LoggedCandidate;
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

  test('of a recall with very much feedback the first sixteen of each verdict count', () => {
    const recalls = judged(50, byTruth(truth, 0.65)).map((recall) => {
      const random = createRandom(1);
      const more = Array.from({ length: 60 }, (_, place) => candidateOf(1_000_000 + place, random));
      const given = more.map(({ id }, place) => ({ memoryId: id, verdict: place % 2 ? 'used' : 'useless', at: 0 }));
      return { ...recall, candidates: [...recall.candidates, ...more], feedback: [...recall.feedback, ...given] };
    }) as RecallRecord[];
    const withFewer = recalls.map((recall) => {
      const verdicts = new Map(recall.feedback.map(({ memoryId, verdict }) => [memoryId, verdict]));
      const firstOf = (used: boolean) =>
        recall.candidates.filter(({ id }) => (verdicts.get(id) === 'used') === used).slice(0, 16);
      const kept = new Set([...firstOf(true), ...firstOf(false)].map(({ id }) => id));
      return { ...recall, feedback: recall.feedback.filter(({ memoryId }) => kept.has(memoryId)) };
    });
    expect(withFewer[0]!.feedback).toHaveLength(32);
    expect(learnWeights(recalls, 'composite', PRESENT)).toEqual(learnWeights(withFewer, 'composite', PRESENT));
  });

  test('the same recalls give the same weights, in any order', () => {
    const recalls = judged(80, byTruth(truth, 0.65));
    expect(learnWeights(recalls.toReversed(), 'composite', PRESENT)).toEqual(
      learnWeights(recalls, 'composite', PRESENT),
    );
  });
});

describe('where words and vectors disagree', () => {
  const bySimilarity = { similarity: 1, salience: 0, recency: 0, waypoint: 0 };
  const present = { weights: bySimilarity, vectorWeight: null, minScore: 0 };

  test.each(['composite', 'activation', 'fusion'] as const)('the share of vectors follows feedback: %s', (profile) => {
    const own = { ...present, weights: profile === 'composite' ? bySimilarity : weightsOf(profile) };
    const byWords: Verdict = ({ fit }) => (fit['coverage']! > 0.6 ? 'used' : 'useless');
    const found = learnWeights(fused(150, byWords, profile, own.weights), profile, own);
    if ('tooFew' in found) throw new Error('too few');
    expect(found.report.after.order).toBeGreaterThan(found.report.before.order + 0.05);
    expect(found.better!.vectorWeight).toBeLessThan(0.4);
    expect(found.better!.vectorWeight).toBeGreaterThanOrEqual(0.05);

    const byVectors: Verdict = ({ fit }) => (fit['cosine']! > 0.6 ? 'used' : 'useless');
    const other = learnWeights(fused(150, byVectors, profile, own.weights), profile, own);
    if ('tooFew' in other) throw new Error('too few');
    expect(other.better!.vectorWeight).toBeGreaterThan(0.6);
    expect(other.better!.vectorWeight).toBeLessThanOrEqual(0.8);
  });

  test('noise changes no share: in 30 trials at most one', () => {
    const noise: Verdict = (_, random) => (random() < 0.5 ? 'used' : 'useless');
    const proposals = Array.from({ length: 30 }, (_, seed) => {
      const found = learnWeights(fused(100, noise, 'composite', bySimilarity, seed), 'composite', present);
      return 'tooFew' in found || found.better !== null;
    });
    expect(proposals.filter(Boolean).length).toBeLessThanOrEqual(1);
  });

  test('a share that nothing speaks against is not set, and one that is set counts', () => {
    const agreeing: Verdict = ({ features }) => (features.similarity > 0.7 ? 'used' : 'useless');
    const recalls = fused(100, agreeing, 'composite', bySimilarity);
    // Only the floor rises.
    expect(learnWeights(recalls, 'composite', present)).toMatchObject({
      better: { weights: bySimilarity, vectorWeight: null },
    });
    const set = learnWeights(recalls, 'composite', { ...present, vectorWeight: 0.1 });
    if ('tooFew' in set) throw new Error('too few');
    expect(set.report.before.order).toBeLessThan(1);
    expect(set.better!.vectorWeight).toBeGreaterThan(0.3);
  });
});

/** Recalls of which words and vectors decided by halves, with fits and ranks at random. */
function fused(count: number, verdictOf: Verdict, profile: Profile, weights: Weights, seed = 1): RecallRecord[] {
  const random = createRandom(seed + 1_000);
  return judged(count, () => 'used', seed).map((recall) => {
    const fits = recall.candidates.map(() => ({ coverage: random(), cosine: random() }));
    const rankOf = (name: 'coverage' | 'cosine', value: number) => 1 + fits.filter((fit) => fit[name] > value).length;
    const scoreOf = ({ coverage, cosine }: (typeof fits)[number]) =>
      0.5 / (60 + rankOf('coverage', coverage)) + 0.5 / (60 + rankOf('cosine', cosine));
    const bestRelevance = Math.max(...fits.map((fit) => relevance(fit, 0.5)));
    const bestFused = Math.max(...fits.map(scoreOf));
    const candidates = recall.candidates.map((candidate, place): LoggedCandidate => {
      const fit = fits[place]!;
      const features = {
        ...candidate.features,
        waypoint: 0,
        similarity: relevance(fit, 0.5) / bestRelevance,
        activation: scoreOf(fit) / bestFused,
      };
      const rawScore = rawScoreOf(features, { profile, weights, bestFused });
      const dense = { rank: rankOf('cosine', fit.cosine), similarity: fit.cosine, window: 0 };
      return { ...candidate, fit, features, rawScore, dense, fused: { rank: 1, score: scoreOf(fit) } };
    });
    const scoring = { profile, weights, vectorWeight: 0.5, bestRelevance, bestFused };
    const feedback = candidates.map((candidate) => ({
      memoryId: candidate.id,
      verdict: verdictOf(candidate, random),
      at: recall.at,
    }));
    return { ...recall, scoring, candidates, feedback };
  });
}

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
