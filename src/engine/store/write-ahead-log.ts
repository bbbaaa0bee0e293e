import type { Store } from './open-store.ts';

/** What SQLite says of a checkpoint: whether somebody held it up, and how many pages the log has and how many were moved. */
export interface Checkpoint {
  readonly busy: number;
  readonly log: number;
  readonly checkpointed: number;
}

/**
 * How much of the log has yet to be moved, asked of SQLite. Its file tells nothing of it: it is written from its beginning again, and never
 * shorter. Nor may anybody open the file of its index (`-shm`) to look: closing it would give up all locks that this process holds there.
 */
export function unmovedLogBytes({ db }: Store): number {
  const [log] = db.pragma('wal_checkpoint(NOOP)') as Checkpoint[];
  return Math.max(0, log!.log - log!.checkpointed) * (db.pragma('page_size', { simple: true }) as number);
}

/** Moves the write-ahead log into the database: `PASSIVE` as far as nobody is held up by it, `TRUNCATE` all of it, which empties the log. */
export function checkpointLog({ db }: Store, mode: 'PASSIVE' | 'TRUNCATE'): Checkpoint | undefined {
  const [result] = db.pragma(`wal_checkpoint(${mode})`) as Checkpoint[];
  return result;
}
