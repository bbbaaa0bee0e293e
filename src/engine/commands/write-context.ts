import type { Config } from '../config.ts';
import type { VectorIndex } from '../ports.ts';
import type { Store } from '../store/open-store.ts';

/** What a write command works with. It runs inside a transaction and awaits nothing. */
export interface WriteContext {
  readonly store: Store;
  readonly config: Config;
  readonly now: number;
  readonly newId: () => string;
  /** The index of each model that has one. */
  readonly indexes: ReadonlyMap<number, VectorIndex>;
  /** W3C trace context of the request on whose behalf it runs, for the jobs that it makes; left out where nothing is traced. */
  readonly trace?: string | undefined;
  /** An upper bound of the jobs that wait, and when a count of them last refused an add: kept between commands of one connection. */
  readonly backlog: { atMost: number; refusedAt?: number };
}
