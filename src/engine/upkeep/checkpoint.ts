import type { Metrics } from '../metrics.ts';
import { walBytes } from '../store/file-on-disk.ts';
import { checkpointLog, unmovedLogBytes } from '../store/write-ahead-log.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';

/** Size from which on a write-ahead log is moved into the database (bytes). */
const CHECKPOINT_WAL_BYTES = 4 * 1024 * 1024;
/** Size from which on a write-ahead log is emptied under the write lock (bytes). */
const TRUNCATE_WAL_BYTES = 32 * 1024 * 1024;

/** The parts that a checkpoint of a tenant's file uses. */
interface CheckpointContext {
  readonly open: () => OpenTenant;
  readonly metrics: Metrics;
}

/**
 * Moves a write-ahead log into the database. If its file has 32 MiB or more, the log is moved completely and emptied,
 * under the write lock; as a rule a file grows so large only if it was never completely moved. Otherwise, if 4 MiB or
 * more of it have not been moved yet, a passive checkpoint moves them, which blocks nobody. Less than that is left
 * alone: pages that are moved early are moved again after their next change.
 */
export function checkpoint(context: CheckpointContext): void {
  const { store } = context.open();
  const bytes = walBytes(store.path);
  if (bytes >= TRUNCATE_WAL_BYTES) moveLog(context, 'TRUNCATE');
  else if (bytes >= CHECKPOINT_WAL_BYTES && unmovedLogBytes(store) >= CHECKPOINT_WAL_BYTES) moveLog(context, 'PASSIVE');
}

/**
 * Runs a checkpoint, whatever the size of the log, and counts it. `TRUNCATE` empties the log under the write lock.
 * @returns whether the whole log is in the database now; always true in PostgreSQL
 */
export function moveLog({ open, metrics }: CheckpointContext, mode: 'PASSIVE' | 'TRUNCATE'): boolean {
  const startedAt = performance.now();
  const { store } = open();
  if (store.words !== null) return true; // The log is PostgreSQL's.
  const result = checkpointLog(store, mode);
  metrics.checkpointDurations.observe((performance.now() - startedAt) / 1000);
  const isBusy = result.busy !== 0;
  const isComplete = !isBusy && result.log === result.checkpointed;
  metrics.checkpoints.inc({ outcome: isBusy ? 'busy' : isComplete ? 'complete' : 'partial' });
  return isComplete;
}
