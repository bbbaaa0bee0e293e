import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byRawScore, type Candidate } from '../../../src/engine/retrieve/candidate.ts';
import { applySessionPrior } from '../../../src/engine/retrieve/prior.ts';

interface Fit {
  readonly session: string;
  readonly similarity: number;
  readonly user?: number;
  readonly factor?: number;
}

/** Candidates whose raw score is their similarity, best first; ids are the places in the list given. */
function candidates(fits: readonly Fit[]): Candidate[] {
  return fits
    .map(
      ({ session, similarity, user = 1, factor }, place) =>
        ({
          row: { memoryNo: place, id: String(place).padStart(3, '0'), userNo: user, sessionId: session },
          features: { similarity },
          rawScore: similarity * (factor ?? 1),
          adjustments: factor === undefined ? [] : [{ by: 'contradicted', factor }],
        }) as unknown as Candidate,
    )
    .sort(byRawScore);
}

const factors = (ranked: readonly Candidate[]) =>
  Object.fromEntries(
    ranked.map(({ row, adjustments }) => [row.memoryNo, adjustments.find(({ by }) => by === 'session')?.factor ?? 1]),
  );

test('a memory gains from others of its session that fit', () => {
  const ranked = applySessionPrior(
    candidates([
      { session: 'trip', similarity: 0.8 },
      { session: 'work', similarity: 0.81 },
      { session: 'trip', similarity: 0.7 },
    ]),
    0.2,
  );
  // Two turns speak of the trip, one of work.
  expect(ranked.map(({ row }) => row.memoryNo)).toEqual([0, 1, 2]);
  // The weaker of the two stands witness for both, as 0.7² of a full match.
  expect(factors(ranked)).toEqual({ 0: 1 + 0.2 * 0.49, 1: 1, 2: 1 + 0.2 * 0.49 });
});

test('memories without a session gain nothing from each other', () => {
  const ranked = applySessionPrior(
    candidates([
      { session: '', similarity: 0.9 },
      { session: '', similarity: 0.8 },
    ]),
    1,
  );
  expect(factors(ranked)).toEqual({ 0: 1, 1: 1 });
});

test('sessions of two users are two, though they are called the same', () => {
  const ranked = applySessionPrior(
    candidates([
      { session: 'monday', user: 1, similarity: 0.9 },
      { session: 'monday', user: 2, similarity: 0.8 },
    ]),
    1,
  );
  expect(factors(ranked)).toEqual({ 0: 1, 1: 1 });
});

test('what was demoted is a weaker witness', () => {
  const gain = (factor: number) =>
    factors(
      applySessionPrior(
        candidates([
          { session: 'trip', similarity: 0.9 },
          { session: 'trip', similarity: 0.8, factor },
        ]),
        1,
      ),
    )[0]!;
  expect(gain(0.3)).toBeLessThan(gain(1));
  expect(gain(0.3)).toBeGreaterThan(1);
});

const fits = fc.array(
  fc.record({
    session: fc.constantFrom('', 'a', 'b', 'c'),
    // In thousandths: two scores that differ by their last bit may become one under a factor.
    similarity: fc.integer({ min: 0, max: 1_000 }).map((number) => number / 1_000),
    user: fc.constantFrom(1, 2),
  }),
  { maxLength: 60 },
);
const weight = fc.double({ min: 0, max: 1, noNaN: true });

test('no candidate is lost, the factor lies in 1..1 + weight, and weight 0 changes nothing', () => {
  fc.assert(
    fc.property(fits, weight, (list, w) => {
      const before = candidates(list);
      const after = applySessionPrior(before, w);
      expect(after.map(({ row }) => row.memoryNo).toSorted()).toEqual(before.map(({ row }) => row.memoryNo).toSorted());
      for (const factor of Object.values(factors(after))) {
        expect(factor).toBeGreaterThanOrEqual(1);
        expect(factor).toBeLessThanOrEqual(1 + w);
      }
      expect(applySessionPrior(before, 0)).toEqual(before);
    }),
  );
});

test('the order within a session stays', () => {
  fc.assert(
    fc.property(fits, weight, (list, w) => {
      const before = candidates(list);
      const after = applySessionPrior(before, w);
      for (const session of ['1 a', '1 b', '2 c']) {
        const ofSession = (ranked: readonly Candidate[]) =>
          ranked.filter(({ row }) => `${row.userNo} ${row.sessionId}` === session).map(({ row }) => row.memoryNo);
        expect(ofSession(after)).toEqual(ofSession(before));
      }
    }),
  );
});
