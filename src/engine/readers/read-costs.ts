import { LRUCache } from 'lru-cache';

/** The expected cost of one kind of read by one API key. All reads of that kind and key share the object. */
export interface ReadCost {
  /** Thread time that the next read of this kind is expected to take (ms); 0 until one has ended. */
  expectedMs: number;
}

/**
 * Greatest number of costs that are remembered, one for each kind of read and key. Beyond it, the cost that was not
 * used for the longest time is forgotten.
 */
const MAX_KNOWN = 10_000;
/**
 * Least share of the expected time that remains after a read that took less time. About fifteen quick reads make up for
 * a slow one.
 */
const REMAINING_SHARE = 0.8;

/** Learns the costs of reads from the reads that have ended. */
export class ReadCosts {
  readonly #known = new LRUCache<string, ReadCost>({ max: MAX_KNOWN });

  /** Returns the cost of reads with this name, by this API key, of the tenant whose file is at `path`. */
  of(path: string, key: string, name: string): ReadCost {
    const id = `${name}\n${key}\n${path}`;
    let cost = this.#known.get(id);
    if (cost === undefined) this.#known.set(id, (cost = { expectedMs: 0 }));
    return cost;
  }
}

/**
 * Records the time that a read took. A slow read raises the expectation at once, and each quicker one lowers it by at
 * most a fifth. So a key that alternates slow and quick queries counts as slow.
 */
export function noteCost(cost: ReadCost, ms: number): void {
  cost.expectedMs = Math.max(ms, cost.expectedMs * REMAINING_SHARE);
}
