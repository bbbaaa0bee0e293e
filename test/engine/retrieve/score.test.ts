import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  byScore,
  COMPOSITE_WEIGHTS,
  confidenceOf,
  featuresOf,
  relevance,
  scoreComposite,
} from '../../../src/engine/retrieve/score.ts';
import type { RankingRow } from '../../../src/engine/store/search.ts';

const DAY = 86_400_000;
const row: RankingRow = { seq: 1, id: 'a', salience: 0.8, salienceAt: 0, decayLambda: 0.01, lastSeenAt: 0 };
const share = fc.double({ min: 0, max: 1, noNaN: true });

test('salience and recency are what is left of them at the moment of asking', () => {
  const features = featuresOf(row, { similarity: 0.5, waypoint: 0, now: 20 * DAY });
  expect(features.salience).toBeCloseTo(0.8 * Math.exp(-0.2), 12);
  expect(features.recency).toBeCloseTo(Math.exp(-1), 12);
});

test('a clock that stepped back counts as no time', () => {
  expect(featuresOf(row, { similarity: 0, waypoint: 0, now: -DAY })).toMatchObject({ salience: 0.8, recency: 1 });
});

test('the raw score is the weighted sum', () => {
  const features = { similarity: 1, salience: 0.5, recency: 0.2, waypoint: 0.4 };
  const { rawScore, score } = scoreComposite(row, features, { weights: COMPOSITE_WEIGHTS, confidence: 0.5 });
  expect(rawScore).toBeCloseTo(0.6 + 0.1 + 0.02 + 0.04, 12);
  expect(score).toBeCloseTo(rawScore / 2, 12);
});

test('scores stay in 0..1 and keep the order of raw scores, whatever the weights', () => {
  const features = fc.record({ similarity: share, salience: share, recency: share, waypoint: share });
  const weights = fc.record({ similarity: share, salience: share, recency: share, waypoint: share });
  fc.assert(
    fc.property(features, features, weights, share, (one, other, chosen, confidence) => {
      const [a, b] = [one, other].map((each) => scoreComposite(row, each, { weights: chosen, confidence }));
      for (const { score } of [a!, b!]) expect(score >= 0 && score <= 1).toBe(true);
      if (a!.rawScore > b!.rawScore) expect(a!.score).toBeGreaterThanOrEqual(b!.score);
    }),
  );
});

test('without a vector words alone decide', () => {
  expect(relevance({ coverage: 0.7, cosine: null }, 0.9)).toBe(0.7);
  expect(relevance({ coverage: 0.5, cosine: 1 }, 0.2)).toBeCloseTo(0.6, 12);
  expect(relevance({ coverage: 0.5, cosine: -1 }, 0.2)).toBeCloseTo(0.4, 12);
});

test('the confidence is the most that any candidate covers, by words or by meaning', () => {
  expect(confidenceOf([])).toBe(0);
  expect(
    confidenceOf([
      { coverage: 0.2, cosine: 0.6 },
      { coverage: 0.5, cosine: null },
    ]),
  ).toBe(0.6);
  expect(confidenceOf([{ coverage: 1.4, cosine: null }])).toBe(1);
});

test('equal scores stand by id', () => {
  const scored = ['b', 'a'].map((id) =>
    scoreComposite(
      { ...row, id },
      { similarity: 1, salience: 0, recency: 0, waypoint: 0 },
      { weights: COMPOSITE_WEIGHTS, confidence: 1 },
    ),
  );
  expect(scored.sort(byScore).map((each) => each.row.id)).toEqual(['a', 'b']);
});
