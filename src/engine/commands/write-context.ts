import type { Config } from '../config.ts';
import type { VectorIndex } from '../ports.ts';
import type { Store } from '../store/open-store.ts';

/** Context of a write command, which runs inside a transaction and awaits nothing. */
export interface WriteContext {
  readonly store: Store;
  readonly config: Config;
  /** Time of the command, Unix ms. */
  readonly now: number;
  readonly newId: () => string;
  /** Vector indexes by the number of their model. */
  readonly indexes: ReadonlyMap<number, VectorIndex>;
  /** Public id of the key in whose name the command runs; null for what Cairn does by itself. */
  readonly writtenBy: string | null;
  /** W3C trace context of the request, for the jobs that the command makes; left out where nothing is traced. */
  readonly trace?: string | undefined;
  /**
   * Upper bound of the number of jobs that wait, and the time at which a count of them last refused an add (Unix ms).
   * It is kept between the commands of one connection.
   */
  readonly backlog: { atMost: number; refusedAt?: number };
}
