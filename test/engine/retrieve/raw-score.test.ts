import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { byRawScore, type Findings } from '../../../src/engine/retrieve/candidate.ts';
import { DEFAULT_OPTIONS } from '../../../src/engine/retrieve/options.ts';
import {
  featuresOf,
  PROFILE_WEIGHTS,
  rawScoreOf,
  relevance,
  scoreCandidate,
  type Scoring,
  weightsOf,
} from '../../../src/engine/retrieve/raw-score.ts';
import type { RankingRow } from '../../../src/engine/store/ranking-rows.ts';
import { type Features, PROFILES, SIMILARITIES, WEIGHT_NAMES } from '../../../src/engine/types.ts';

const row: RankingRow = {
  memoryNo: 1,
  id: 'a',
  userNo: 1,
  sessionId: '',
  eventTime: 0,
  status: 'active',
  confidence: 0.7,
  salience: 0.8,
  salienceAt: 0,
  decayLambda: 0.01,
  strength: 0.9,
  strengthAt: 0,
  writerNo: null,
  generationNo: null,
  lastSeenAt: 0,
};
const nothing: Findings = {
  lexical: null,
  dense: null,
  fused: null,
  arrival: null,
  fit: { coverage: 0, cosine: null },
};
const scoringOf = (changes: Partial<Scoring> = {}): Scoring => ({
  profile: 'composite',
  weights: weightsOf(changes.profile ?? 'composite'),
  vectorWeight: 0.5,
  similarity: 'relative',
  penalties: DEFAULT_OPTIONS.penalties,
  bestRelevance: 1,
  bestFused: 1 / 61,
  now: 0,
  ...changes,
});
/** All features at 1: those that a formula reads are replaced. */
const ALL: Features = {
  similarity: 1,
  activation: 1,
  waypoint: 1,
  salience: 1,
  strength: 1,
  recency: 1,
  retention: 1,
  confidence: 1,
};
const found = (score: number, rank = 1): Findings['fused'] => ({ rank, item: { memoryNo: 1, score } });
const arrived = (activation: number): Findings['arrival'] => ({
  memoryNo: 1,
  activation,
  from: 2,
  via: 'waypoint',
  weight: 1,
  hops: 1,
  path: [2],
});

describe('features', () => {
  test('fade to what is left of them at the moment of asking', () => {
    const features = featuresOf(row, nothing, scoringOf({ now: 20 * DAY_MS }));
    expect(features.salience).toBeCloseTo(0.8 * Math.exp(-0.2), 12);
    expect(features.strength).toBeCloseTo(0.9 * Math.exp(-0.2), 12);
    expect(features.recency).toBeCloseTo(Math.exp(-1), 12);
    expect(features.retention).toBeCloseTo(Math.exp(-0.2), 12);
    expect(features.confidence).toBe(0.7);
  });

  // OpenMem, "Recency": a half-life of about 14 days, .95 after a day, .22 after a month.
  test.each([
    [1, 0.95],
    [14, 0.5],
    [30, 0.22],
  ])('recency after %d days is about %d', (days, recency) => {
    expect(featuresOf(row, nothing, scoringOf({ now: days * DAY_MS })).recency).toBeCloseTo(recency, 2);
  });

  test('count a clock that stepped back as no time', () => {
    expect(featuresOf(row, nothing, scoringOf({ now: -DAY_MS }))).toMatchObject({
      salience: 0.8,
      strength: 0.9,
      recency: 1,
      retention: 1,
    });
  });

  test('retention never falls under its floor, so that what was not seen for years can be recalled', () => {
    const { retention } = featuresOf(row, nothing, scoringOf({ now: 10_000 * DAY_MS }));
    expect(retention).toBe(0.02);
  });

  test('activation is the share of the best fused score, or what a link brought where that is more', () => {
    const scoring = scoringOf();
    expect(featuresOf(row, { ...nothing, fused: found(1 / 61) }, scoring).activation).toBe(1);
    expect(featuresOf(row, { ...nothing, fused: found(1 / 122) }, scoring).activation).toBeCloseTo(0.5, 12);
    const linked = featuresOf(row, { ...nothing, fused: found(1 / 610), arrival: arrived(0.24) }, scoring);
    expect(linked).toMatchObject({ activation: 0.24, waypoint: 0.24 });
    expect(featuresOf(row, { ...nothing, fused: found(1 / 61) }, scoring).waypoint).toBe(0);
  });

  test('similarity is the share of the best fit', () => {
    const half = { ...nothing, fit: { coverage: 0.3, cosine: 0.5 } };
    expect(featuresOf(row, half, scoringOf({ bestRelevance: 0.8 })).similarity).toBeCloseTo(0.5, 12);
  });
});

describe('relevance', () => {
  test('is decided by words alone where there is no vector', () => {
    expect(relevance({ coverage: 0.7, cosine: null }, 0.9)).toBe(0.7);
  });

  test('weighs words and vectors', () => {
    expect(relevance({ coverage: 0.5, cosine: 1 }, 0.2)).toBeCloseTo(0.6, 12);
    expect(relevance({ coverage: 0.5, cosine: -1 }, 0.2)).toBeCloseTo(0.4, 12);
  });
});

describe('the composite profile', () => {
  test('is OpenMemory’s sum', () => {
    const features = { ...ALL, similarity: 1, salience: 0.5, recency: 0.2, waypoint: 0.4 };
    expect(rawScoreOf(features, scoringOf())).toBeCloseTo(0.7 * 1 + 0.1 * 0.5 + 0.1 * 0.2 + 0.1 * 0.4, 12);
  });
});

describe('the activation profile', () => {
  const scoring = scoringOf({ profile: 'activation' });

  test('is OpenMem’s sum', () => {
    const features = { ...ALL, activation: 0.8, recency: 0.95, strength: 1, confidence: 0.9 };
    expect(rawScoreOf(features, scoring)).toBeCloseTo(0.5 * 0.8 + 0.2 * 0.95 + 0.2 * 1 + 0.1 * 0.9, 12);
  });

  // OpenMem, "Status penalty".
  test.each([
    ['active', 1],
    ['superseded', 0.5],
    ['contradicted', 0.3],
  ] as const)('counts what is %s %d times', (status, factor) => {
    const plain = scoreCandidate(row, { ...nothing, fused: found(1 / 61) }, scoring);
    const lowered = scoreCandidate({ ...row, status }, { ...nothing, fused: found(1 / 61) }, scoring);
    expect(lowered.rawScore).toBeCloseTo(plain.rawScore * factor, 12);
    expect(lowered.adjustments).toEqual(factor === 1 ? [] : [{ by: 'status', factor }]);
  });
});

describe('the retention profile', () => {
  const scoring = scoringOf({ profile: 'retention' });
  const scoreOf = (similarity: number, retention: number, alpha = 0.3) =>
    rawScoreOf({ ...ALL, similarity, retention }, { ...scoring, weights: { alpha } });

  // cognitive-memory, "Why R^alpha instead of just R?". Its table has .93 for .80, which is .935 cut, and .50 for .10,
  // which is .501.
  test.each([
    [1, 1],
    [0.8, 0.935],
    [0.6, 0.86],
    [0.4, 0.76],
    [0.2, 0.62],
    [0.1, 0.5],
    [0.02, 0.31],
  ])('softens a retention of %d to %d', (retention, softened) => {
    expect(scoreOf(1, retention)).toBeCloseTo(softened, 2);
    expect(scoreOf(1, retention, 1)).toBe(retention);
  });

  test('lets an old memory that fits well pass a recent one that fits less', () => {
    // cognitive-memory, "Practical effect": A is recent and fits moderately, B is old and fits well.
    const [a, b] = [scoreOf(0.6, 0.95), scoreOf(0.9, 0.25)];
    expect(a).toBeCloseTo(0.591, 3);
    expect(b).toBeCloseTo(0.594, 3);
    expect(scoreOf(0.9, 0.25, 1)).toBeCloseTo(0.225, 12);
  });

  test('halves what is superseded', () => {
    // cognitive-memory, "Deep recall penalty".
    const fit = { ...nothing, fit: { coverage: 1, cosine: 1 } };
    const [live, old] = [row, { ...row, status: 'superseded' as const }].map((each) =>
      scoreCandidate(each, fit, scoring),
    );
    expect(old!.rawScore).toBeCloseTo(live!.rawScore / 2, 12);
  });
});

describe('the fusion profile', () => {
  test('is the fused score itself, and for a linked memory its share of the best', () => {
    const scoring = scoringOf({ profile: 'fusion' });
    expect(scoreCandidate(row, { ...nothing, fused: found(1 / 122) }, scoring).rawScore).toBeCloseTo(1 / 122, 12);
    expect(scoreCandidate(row, { ...nothing, arrival: arrived(0.24) }, scoring).rawScore).toBeCloseTo(0.24 / 61, 12);
  });
});

describe('weights', () => {
  test('replace the defaults one by one, and those of other profiles are passed over', () => {
    expect(weightsOf('composite', { salience: 0, alpha: 1 })).toEqual({ ...PROFILE_WEIGHTS.composite, salience: 0 });
    expect(weightsOf('retention', { alpha: 1, salience: 0 })).toEqual({ alpha: 1 });
    expect(weightsOf('fusion', { alpha: 1 })).toEqual({});
  });

  test('of the additive profiles sum to 1 by default', () => {
    for (const profile of ['composite', 'activation'] as const) {
      expect(rawScoreOf(ALL, scoringOf({ profile }))).toBeCloseTo(1, 12);
    }
  });

  test('of 0 leave a feature out', () => {
    const weights = weightsOf('composite', { similarity: 0, salience: 1, recency: 0, waypoint: 0 });
    expect(rawScoreOf({ ...ALL, salience: 0.4 }, scoringOf({ weights }))).toBe(0.4);
  });
});

const share = fc.double({ min: 0, max: 1, noNaN: true });
const features: fc.Arbitrary<Features> = fc.record({
  similarity: share,
  activation: share,
  waypoint: share,
  salience: share,
  strength: share,
  recency: share,
  retention: share,
  confidence: share,
});
const scoring = fc
  .record({
    profile: fc.constantFrom(...PROFILES),
    given: fc.record(Object.fromEntries(WEIGHT_NAMES.map((name) => [name, share])), { requiredKeys: [] }),
    bestFused: fc.double({ min: 1e-4, max: 1 / 61, noNaN: true }),
    vectorWeight: share,
    similarity: fc.constantFrom(...SIMILARITIES),
    bestRelevance: fc.double({ min: 1e-6, max: 1.5, noNaN: true }),
    now: fc.integer({ min: -DAY_MS, max: 4_000 * DAY_MS }),
  })
  .map(({ given, ...rest }): Scoring => ({
    ...rest,
    penalties: DEFAULT_OPTIONS.penalties,
    weights: weightsOf(rest.profile, given),
  }));

test('a raw score lies between 0 and what all features at 1 would give', () => {
  fc.assert(
    fc.property(features, scoring, (given, how) => {
      const rawScore = rawScoreOf(given, how);
      expect(rawScore).toBeGreaterThanOrEqual(0);
      expect(rawScore).toBeLessThanOrEqual(rawScoreOf(ALL, how) + 1e-12);
    }),
  );
});

test('more of a feature never lowers a raw score', () => {
  const names = Object.keys(ALL) as (keyof Features)[];
  fc.assert(
    fc.property(features, scoring, fc.constantFrom(...names), share, (given, how, name, more) => {
      const raised = { ...given, [name]: Math.max(given[name], more) };
      expect(rawScoreOf(raised, how)).toBeGreaterThanOrEqual(rawScoreOf(given, how) - 1e-12);
    }),
  );
});

test('every feature lies in 0..1, whatever was stored and found', () => {
  const rows = fc.record({
    salience: share,
    salienceAt: fc.integer({ min: 0, max: 5_000 * DAY_MS }),
    strength: share,
    strengthAt: fc.integer({ min: 0, max: 5_000 * DAY_MS }),
    decayLambda: fc.double({ min: 0, max: 100, noNaN: true }),
    lastSeenAt: fc.integer({ min: 0, max: 5_000 * DAY_MS }),
    confidence: share,
  });
  const fits = fc.record({
    coverage: fc.double({ min: 0, max: 2.2, noNaN: true }),
    cosine: fc.option(fc.double({ min: -1, max: 1, noNaN: true })),
  });
  fc.assert(
    fc.property(rows, fits, fc.option(share), fc.option(share), scoring, (stored, fit, fused, arrival, how) => {
      const findings = {
        ...nothing,
        fit,
        fused: fused === null ? null : found(fused * how.bestFused),
        arrival: arrival === null ? null : arrived(arrival),
      };
      // The best relevance is that of some candidate, so no candidate's is above it.
      const bestRelevance = Math.max(how.bestRelevance, relevance(fit, how.vectorWeight));
      for (const value of Object.values(featuresOf({ ...row, ...stored }, findings, { ...how, bestRelevance }))) {
        expect(value >= 0 && value <= 1, String(value)).toBe(true);
      }
    }),
  );
});

test('equal scores stand by id', () => {
  const scored = ['b', 'c', 'a'].map((id) => scoreCandidate({ ...row, id }, nothing, scoringOf()));
  expect(scored.sort(byRawScore).map((each) => each.row.id)).toEqual(['a', 'b', 'c']);
});
