import type { CompiledFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import { type Step, stepsFrom } from '../store/search.ts';

/** A memory with how strongly the query woke it, 0..1: 1 for the best direct hit. */
export interface Activated {
  readonly seq: number;
  readonly activation: number;
}

/** The best activation that came to a memory over a link. */
export interface Arrival extends Activated {
  readonly from: number;
  readonly weight: number;
}

export const DECAY_PER_HOP = 0.5;
const ORIGINS_MOST = 20;
const STEPS_PER_ORIGIN = 10;

/**
 * One hop over the links of the best direct hits, in both directions, to memories that pass the filter.
 * @param hits best first
 */
export function expand(store: Store, hits: readonly Activated[], filter: CompiledFilter): Map<number, Arrival> {
  const origins = hits.slice(0, ORIGINS_MOST);
  if (origins.length === 0) return new Map();
  return spread(
    origins,
    stepsFrom(
      store,
      origins.map(({ seq }) => seq),
      filter,
      STEPS_PER_ORIGIN,
    ),
  );
}

/**
 * Spreading activation: what arrives is source × weight × decay, and of several arrivals the strongest counts, not their
 * sum, so that a hub gains nothing from its many links. Ties go to the lower number.
 */
export function spread(origins: readonly Activated[], steps: readonly Step[]): Map<number, Arrival> {
  const activations = new Map(origins.map(({ seq, activation }) => [seq, activation]));
  const arrivals = new Map<number, Arrival>();
  for (const { origin, reached, weight } of steps) {
    const activation = (activations.get(origin) ?? 0) * weight * DECAY_PER_HOP;
    const best = arrivals.get(reached);
    if (best === undefined || activation > best.activation || (activation === best.activation && origin < best.from)) {
      arrivals.set(reached, { seq: reached, activation, from: origin, weight });
    }
  }
  return arrivals;
}
