import { describe, expect, test } from 'vitest';
import { completeQuery, DEFAULT_OPTIONS } from '../../../src/engine/retrieve/options.ts';
import type { MemoryQuery, RetrievalOptions } from '../../../src/engine/types.ts';

const query = (options: RetrievalOptions = {}): MemoryQuery => ({ query: 'x', k: 8, filter: {}, ...options });

describe('what a query does not say', () => {
  test('is said by the tenant, then by the settings, then by the defaults', () => {
    const settings: RetrievalOptions = { minScore: 0.1, maxHops: 3, decayPerHop: 0.9 };
    const tenant: RetrievalOptions = { minScore: 0.2, maxHops: 1 };
    const complete = completeQuery(query({ minScore: 0.3 }), [tenant, settings]);
    expect(complete).toMatchObject({
      minScore: 0.3,
      maxHops: 1,
      decayPerHop: 0.9,
      perDocument: DEFAULT_OPTIONS.perDocument,
    });
  });

  test('may be said with 0 and false', () => {
    const complete = completeQuery(query({ maxHops: 0, entityGraph: false }), [{ maxHops: 2, entityGraph: true }]);
    expect(complete).toMatchObject({ maxHops: 0, entityGraph: false });
  });

  test('is not said by undefined', () => {
    const complete = completeQuery(query({ maxHops: undefined, weights: undefined }), [
      { maxHops: 1, weights: { salience: 0 } },
      { maxHops: undefined },
    ]);
    expect(complete).toMatchObject({ maxHops: 1, weights: { salience: 0 } });
  });
});

describe('weights', () => {
  test('are merged by name, those of the columns too', () => {
    const complete = completeQuery(query({ weights: { salience: 0.1 }, columnWeights: { title: 5 } }), [
      { weights: { salience: 0.9, recency: 0.3 }, columnWeights: { title: 1, tags: 4 } },
      { weights: { recency: 0.8, waypoint: 0.7 }, columnWeights: { tags: 2, gist: 3 } },
    ]);
    expect(complete.weights).toEqual({ salience: 0.1, recency: 0.3, waypoint: 0.7 });
    expect(complete.columnWeights).toEqual({ title: 5, tags: 4, gist: 3 });
  });

  test.each<[RetrievalOptions, RetrievalOptions, string]>([
    [
      { weights: { strength: 1, salience: 1, alpha: 1 } },
      {},
      'weights: the profile composite does not read strength, alpha; allowed: similarity, salience, recency, waypoint',
    ],
    [
      { weights: { alpha: 1 } },
      { profile: 'fusion' },
      'weights: the profile fusion does not read alpha; allowed: none',
    ],
    [
      { profile: 'retention', weights: { recency: 0 } },
      {},
      'weights: the profile retention does not read recency; allowed: alpha',
    ],
  ])('of another profile than the one in use are refused: %o over %o', (options, tenant, message) => {
    expect(() => completeQuery(query(options), [tenant])).toThrow(
      expect.objectContaining({ code: 'invalid', message }),
    );
  });

  test('of all profiles may stand in a tenant’s defaults', () => {
    const tenant = { weights: { alpha: 1, salience: 0 } };
    expect(completeQuery(query({ profile: 'retention' }), [tenant]).weights).toEqual(tenant.weights);
  });
});
