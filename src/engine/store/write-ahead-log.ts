import type { Store } from './open-store.ts';

/** Result of a checkpoint of the write-ahead log, as SQLite reports it. */
export interface Checkpoint {
  /** 1 if another connection kept the checkpoint from completing, else 0. */
  readonly busy: number;
  /** Number of pages in the log. */
  readonly log: number;
  /** Number of pages of the log that have been moved into the database. */
  readonly checkpointed: number;
}

/**
 * Returns the number of bytes in the write-ahead log that a checkpoint has not moved into the database yet. The size of
 * the log's file does not tell, since the file is overwritten from its beginning and never gets shorter. This must not
 * open the log's index (`-shm`): closing it would release all locks that this process holds on it.
 */
export function unmovedLogBytes(store: Store): number {
  const { log, checkpointed } = store.prepare('PRAGMA wal_checkpoint(NOOP)').get() as Checkpoint;
  return Math.max(0, log - checkpointed) * (store.prepare('PRAGMA page_size').pluck().get() as number);
}

/**
 * Moves the write-ahead log into the database. `PASSIVE` moves as much as possible without making anyone wait.
 * `TRUNCATE` moves everything and empties the log, and blocks writers meanwhile; if another connection prevents that,
 * `busy` is 1.
 */
export function checkpointLog(store: Store, mode: 'PASSIVE' | 'TRUNCATE'): Checkpoint {
  return store.prepare(`PRAGMA wal_checkpoint(${mode})`).get() as Checkpoint;
}
