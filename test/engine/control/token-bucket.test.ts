import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { takeFrom } from '../../../src/engine/control/token-bucket.ts';

const request = { cost: 1, perMinute: 60, mustFit: true, now: 1_000_000 };

describe('a token bucket', () => {
  test('a minute of tokens may come at once, and then one as each is filled', () => {
    let fullAt: number | undefined;
    const take = (now: number) => {
      const verdict = takeFrom(fullAt, { ...request, now });
      if (verdict.isAllowed) ({ fullAt } = verdict);
      return verdict;
    };
    const burst = Array.from({ length: 61 }, () => take(0));
    expect(burst.filter(({ isAllowed }) => isAllowed)).toHaveLength(60);
    expect(burst[0]).toMatchObject({ remaining: 59, resetMs: 1_000 });
    expect(burst[60]).toMatchObject({ isAllowed: false, remaining: 0, retryAfterMs: 1_000 });
    expect(take(999).isAllowed).toBe(false);
    expect(take(1_000).isAllowed).toBe(true);
  });

  test('whoever waits as told is allowed, and no key gets more than a bucket and its filling', () => {
    const step = fc.record({ cost: fc.integer({ min: 0, max: 100 }), pauseMs: fc.integer({ min: 0, max: 20_000 }) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.array(step, { maxLength: 60 }), (perMinute, steps) => {
        let [fullAt, now, spent]: [number | undefined, number, number] = [undefined, 5_000, 0];
        for (const { cost, pauseMs } of steps) {
          now += pauseMs;
          const verdict = takeFrom(fullAt, { cost, perMinute, mustFit: true, now });
          if (verdict.isAllowed) {
            ({ fullAt } = verdict);
            spent += cost;
          } else {
            const later = now + Math.ceil(verdict.retryAfterMs);
            expect(takeFrom(fullAt, { cost, perMinute, mustFit: true, now: later }).isAllowed).toBe(true);
          }
        }
        // One request may be larger than what is left of the bucket only if the bucket is full.
        expect(spent).toBeLessThanOrEqual(perMinute + ((now - 5_000) * perMinute) / 60_000 + 100);
      }),
    );
  });

  test('a request larger than the bucket waits until it is full, and leaves a debt of at most an hour', () => {
    const large = { ...request, cost: 600 };
    expect(takeFrom(undefined, large)).toMatchObject({ isAllowed: true, remaining: 0, resetMs: 600_000 });
    expect(takeFrom(request.now + 1, large)).toMatchObject({ isAllowed: false, retryAfterMs: 1 });
    expect(takeFrom(undefined, { ...request, cost: 1e9 }).resetMs).toBe(3_600_000);
  });

  test('a clock that was set back by a year blocks nobody for more than an hour', () => {
    const verdict = takeFrom(request.now + 365 * 86_400_000, request);
    expect(verdict.retryAfterMs).toBeLessThanOrEqual(3_600_000);
  });
});
