import type { Metrics } from '../metrics.ts';
import type { Clock } from '../ports.ts';
import type { Claim } from '../store/jobs.ts';

/**
 * Observes in the metrics how long memories took from the add of their jobs (at the add of the memory, or at a change
 * while it had no unfinished job) to the stage that the jobs have reached.
 */
export function observeReady(
  { metrics, clock }: { readonly metrics: Metrics; readonly clock: Clock },
  stage: 'encoded' | 'linked',
  claims: readonly Claim[],
): void {
  const now = clock.now();
  for (const { createdAt, isBulk } of claims) {
    const priority = isBulk === 1 ? 'bulk' : 'interactive';
    metrics.readyAfter.observe({ stage, priority }, Math.max(0, now - createdAt) / 1000);
  }
}
