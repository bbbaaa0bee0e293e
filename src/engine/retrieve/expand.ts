import type { Store } from '../store/open-store.ts';
import { type Allowed, type Step, stepsFrom } from '../store/search.ts';
import type { Arrival } from './candidate.ts';

/** A memory with how strongly the query woke it, 0..1: 1 for the best direct hit. */
export interface Activated {
  readonly seq: number;
  readonly activation: number;
}

export interface ExpandOptions extends Allowed {
  /** 0..4 */
  readonly maxHops: number;
  /** 0..1 */
  readonly decayPerHop: number;
}

export const MAX_HOPS = 2;
export const DECAY_PER_HOP = 0.5;
/** Memories that one hop starts from, and links that it follows from each, the strongest first. */
const ORIGINS_MOST = 20;
/** From the second hop on, where less arrives. */
const LATER_ORIGINS_MOST = 8;
const STEPS_PER_ORIGIN = 10;

/**
 * Spreading activation over the links of the best direct hits, in both directions, to memories that pass the filter: one statement
 * a hop. `contradicts` is no way to walk.
 * @param hits all direct hits, best first
 * @returns one arrival for each memory that a link woke more strongly than the query itself did
 */
export function expand(store: Store, hits: readonly Activated[], options: ExpandOptions): Map<number, Arrival> {
  const spreading = startSpreading(hits);
  for (let hop = 1; hop <= options.maxHops && spreading.front.length > 0; hop += 1) {
    const origins = spreading.front.map(({ seq }) => seq);
    spread(spreading, stepsFrom(store, origins, options, STEPS_PER_ORIGIN), options.decayPerHop);
  }
  return spreading.arrivals;
}

/** What was woken so far, how, and from where the next hop starts. Changed by `spread`. */
export interface Spreading {
  readonly activations: Map<number, number>;
  readonly arrivals: Map<number, Arrival>;
  front: readonly Activated[];
}

export function startSpreading(hits: readonly Activated[]): Spreading {
  return {
    activations: new Map(hits.map(({ seq, activation }) => [seq, activation])),
    arrivals: new Map(),
    front: hits.slice(0, ORIGINS_MOST),
  };
}

/**
 * One hop: what arrives is source × weight × decay, and of several arrivals the strongest counts, not their sum, so that a hub gains
 * nothing from its many links. Ties go to the lower number.
 *
 * What the query itself woke counts among them: a link that brings less than that brings nothing, so activation neither returns to
 * where it came from nor do direct hits lift each other. When they did, neighbours of a hit passed better hits: with the waypoints of
 * the link step recall@10 fell by .006 to .010 and nDCG@10 by .004 to .007 on chats in two languages.
 */
export function spread(spreading: Spreading, steps: readonly Step[], decayPerHop: number): void {
  const { activations, arrivals, front } = spreading;
  const sources = new Map(front.map(({ seq, activation }) => [seq, activation]));
  const reachedNow = new Map<number, Step & { readonly activation: number }>();
  for (const step of steps) {
    const { origin, reached, weight } = step;
    const activation = (sources.get(origin) ?? 0) * weight * decayPerHop;
    const best = reachedNow.get(reached);
    const isStronger = activation > (best?.activation ?? activations.get(reached) ?? 0);
    const isTie = activation === best?.activation && origin < best.origin;
    if (isStronger || isTie) reachedNow.set(reached, { ...step, activation });
  }
  // Paths are read before any arrival of this hop is kept: each names the way its activation took.
  const arrived = [...reachedNow.values()].map(({ origin, reached, type, weight, activation }): Arrival => {
    const path = [...(arrivals.get(origin)?.path ?? []), origin];
    return { seq: reached, activation, from: origin, via: type, weight, hops: path.length, path };
  });
  for (const arrival of arrived) {
    arrivals.set(arrival.seq, arrival);
    activations.set(arrival.seq, arrival.activation);
  }
  spreading.front = arrived.sort((a, b) => b.activation - a.activation || a.seq - b.seq).slice(0, LATER_ORIGINS_MOST);
}
