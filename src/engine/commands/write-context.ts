import type { MemoryRow } from '../store/memories.ts';
import type { Config } from '../config.ts';
import type { VectorIndex } from '../ports.ts';
import type { Store } from '../store/open-store.ts';

/** Records what a delete erases, for its receipt. */
export interface ErasureNotes {
  /** Id of the erasure. It alone erases the documents that it hides. */
  readonly id: string;
  /** Records a memory that is about to be erased, with its earlier versions. */
  memory(row: MemoryRow): void;
  /** Records names of documents that the delete hides, and erases later. */
  names(names: readonly string[]): void;
}

/** Context of a write command, which runs inside a transaction and awaits nothing. */
export interface WriteContext {
  readonly store: Store;
  readonly config: Config;
  /** Time of the command, Unix ms. */
  readonly now: number;
  readonly newId: () => string;
  /** Vector indexes by `modelNo`. */
  readonly indexes: ReadonlyMap<number, VectorIndex>;
  /** Public id of the key whose caller runs the command; null for upkeep, which no caller requested. */
  readonly writtenBy: string | null;
  /** Records what the command erases, for the receipt of the delete; left out if there is no receipt. */
  readonly erasing?: ErasureNotes | undefined;
  /** W3C trace context of the request, for the jobs that the command makes; left out if the request is not traced. */
  readonly trace?: string | undefined;
  /**
   * `atMost`: number of waiting jobs at the last count, and of those that adds have added since; `refusedAt`: time at
   * which a count last refused an add (Unix ms). Both are kept between the commands of one connection.
   */
  readonly backlog: { atMost: number; refusedAt?: number };
}
