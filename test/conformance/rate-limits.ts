import { expect } from 'vitest';
import type { CounterPlace } from '../../src/engine/control/counters.ts';
import { openRateLimits } from '../../src/engine/control/rate-limits.ts';
import { DAY_MS } from '../../src/engine/dynamics.ts';
import { createManualClock } from '../support/engine-fixture.ts';

/** Checks that a request, or the question whether one is allowed, begins the hour that a set-back clock may cost. */
export function forgivesSetBackClock(place: CounterPlace): void {
  const clock = createManualClock();
  const rates = openRateLimits(place, clock);
  try {
    const bucketOf = (key: string) => ({ key, kind: 'queries' }) as const;
    const take = (key: string) => rates.take(bucketOf(key), { cost: 1, perMinute: 1, mustFit: true }).isAllowed;
    const peek = (key: string) => rates.peek(bucketOf(key), { cost: 1, perMinute: 1 }).isAllowed;
    for (const ask of [take, peek]) {
      const key = ask.name;
      expect([take(key), ask(key)]).toEqual([true, false]);
      clock.advance(-DAY_MS);
      expect(ask(key)).toBe(false);
      clock.advance(3_600_000);
      expect([ask(key), take(key)]).toEqual([true, ask === peek]);
    }
  } finally {
    rates.close();
  }
}
