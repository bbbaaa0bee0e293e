import type { Store } from './open-store.ts';

/** Result of a checkpoint as SQLite reports it. */
export interface Checkpoint {
  /** 1 if another connection kept the checkpoint from its end, else 0. */
  readonly busy: number;
  /** Number of pages in the log. */
  readonly log: number;
  /** Number of pages of the log that are in the database by now. */
  readonly checkpointed: number;
}

/**
 * Asks SQLite how many bytes of the log have yet to be moved into the database. The size of the log's file does not
 * tell, since it is overwritten from its beginning and never gets shorter. The log's index (`-shm`) must not be opened
 * for a look: closing it would release all locks that this process holds there.
 */
export function unmovedLogBytes(store: Store): number {
  const { log, checkpointed } = store.prepare('PRAGMA wal_checkpoint(NOOP)').get() as Checkpoint;
  return Math.max(0, log - checkpointed) * (store.prepare('PRAGMA page_size').pluck().get() as number);
}

/**
 * Moves the write-ahead log into the database. `PASSIVE` moves what it can without making anybody wait. `TRUNCATE`
 * moves all and empties the log, and keeps writers out meanwhile; if another connection is in the way, `busy` is 1.
 */
export function checkpointLog(store: Store, mode: 'PASSIVE' | 'TRUNCATE'): Checkpoint | undefined {
  return store.prepare(`PRAGMA wal_checkpoint(${mode})`).get() as Checkpoint | undefined;
}
