import type { MemoryRow } from '../store/memories.ts';
import type { Config } from '../config.ts';
import type { VectorIndex } from '../ports.ts';
import type { Store } from '../store/open-store.ts';

/** Collects what a delete erases, for its receipt. */
export interface ErasureNotes {
  /** Notes a memory that is about to be erased, with its earlier versions. */
  memory(row: MemoryRow): void;
}

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
  /** Collects what the command erases, for the receipt of the delete; left out where none is made. */
  readonly erasing?: ErasureNotes | undefined;
  /** W3C trace context of the request, for the jobs that the command makes; left out where nothing is traced. */
  readonly trace?: string | undefined;
  /**
   * Upper bound of the number of jobs that wait, and the time at which a count of them last refused an add (Unix ms).
   * It is kept between the commands of one connection.
   */
  readonly backlog: { atMost: number; refusedAt?: number };
}
