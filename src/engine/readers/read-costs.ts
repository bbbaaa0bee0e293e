import { LRUCache } from 'lru-cache';

/** What one kind of read costs one key, as far as it is known. All reads of the kind share the object. */
export interface ReadCost {
  /** Time of a thread that the next such read is expected to take (ms); 0 as long as none has ended. */
  expectedMs: number;
}

/** Most kinds of reads that are known, over all keys. One that is forgotten counts as new. */
const MAX_KNOWN = 10_000;
/** Share of an expectation that is left after a read that took less. So about fifteen quick reads follow a slow one. */
const KEPT = 0.8;

/** Learns what reads cost from those that have ended. */
export class ReadCosts {
  readonly #known = new LRUCache<string, ReadCost>({ max: MAX_KNOWN });

  /** Returns what reads of this name cost this key of the tenant with the file at `path`. */
  of(path: string, key: string, name: string): ReadCost {
    const id = `${name}\n${key}\n${path}`;
    let cost = this.#known.get(id);
    if (cost === undefined) this.#known.set(id, (cost = { expectedMs: 0 }));
    return cost;
  }
}

/**
 * Notes the time that a read took. A slow read counts at once and quick ones after it lower the expectation step by
 * step, so that who asks slow and quick questions in turn is taken for slow.
 */
export function noteCost(cost: ReadCost, ms: number): void {
  cost.expectedMs = Math.max(ms, cost.expectedMs * KEPT);
}
