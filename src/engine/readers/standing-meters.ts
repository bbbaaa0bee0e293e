/** Keeps the evidence meters (how well a text answers a query) of the standing queries that are compared most. */

import { LRUCache } from 'lru-cache';
import { createEvidenceMeter, type EvidenceMeter } from '../retrieve/evidence-meter.ts';
import type { PreparedQuery } from '../retrieve/standing-index.ts';
import type { Store } from '../store/open-store.ts';

/**
 * Greatest number of meters that a connection keeps, some 8 kB each; beyond it the longest unused are dropped. Creating
 * a meter takes 20 µs, and a few queries are compared again and again.
 */
const MAX_METERS = 256;

interface KnownMeter {
  readonly base: number;
  readonly meter: EvidenceMeter;
}

/** Caches of meters by connection: a meter reads through its connection, so the cache goes with it. */
const known = new WeakMap<Store, LRUCache<PreparedQuery['text'], KnownMeter>>();

/**
 * Returns the meter that measures how well texts answer a query. It is cached until the query is measured with another
 * `base`, or until it is the longest unused of `MAX_METERS`.
 * @param base cosine of unrelated texts under the query's model, 0 ≤ … < 1
 */
export function meterOf(store: Store, asked: PreparedQuery['text'], base: number): EvidenceMeter {
  let meters = known.get(store);
  if (meters === undefined) known.set(store, (meters = new LRUCache({ max: MAX_METERS })));
  const cached = meters.get(asked);
  if (cached?.base === base) return cached.meter;
  const meter = createEvidenceMeter(store, asked, base);
  meters.set(asked, { base, meter });
  return meter;
}

/** Counts the meters that a connection keeps, for tests. */
export const countMeters = (store: Store): number => known.get(store)?.size ?? 0;
