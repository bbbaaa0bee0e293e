import { setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import { deleteExpired, eraseAbandoned, ERASE_PENDING, ERASE_SLICE } from '../commands/erase.ts';
import { eraseLogItems } from '../commands/session-logs.ts';
import { settleForgotten } from '../commands/settle-document.ts';
import type { WriteContext } from '../commands/write-context.ts';
import type { Config } from '../config.ts';
import { sweepUploads } from '../documents/uploads.ts';
import { DAY_MS, decayLambdaOf } from '../dynamics.ts';
import { serialiseError } from '../errors.ts';
import { countRecovery, type Metrics } from '../metrics.ts';
import type { Clock, Logger } from '../ports.ts';
import { removeFailedUploads, removeReadUploads } from '../steps/remove-uploads.ts';
import { hasAbandoned } from '../store/document-generations.ts';
import { listUploads } from '../store/uploads.ts';
import { reanchorLambda, refreshSalience, sliceEnd } from '../store/dynamics.ts';
import { pruneWaypoints } from '../store/edges.ts';
import { purgeRecalls } from '../store/recalls.ts';
import { purgeEvents } from '../store/events.ts';
import { purgeEmbedLogs } from '../store/embeddings.ts';
import { walBytes } from '../store/file-on-disk.ts';
import { purgeErasures } from '../store/erasures.ts';
import { purgeAudit } from '../store/audit-chain.ts';
import { purgeStoredReplies } from '../store/idempotency.ts';
import { hasLapsedLease, recoverLeases } from '../store/job-leases.ts';
import { purgeJobs } from '../store/job-control.ts';
import { archiveFaded } from '../store/revisions.ts';
import { hasAbandonedLogs, purgeLogOperations } from '../store/session-logs.ts';
import type { Store } from '../store/open-store.ts';
import {
  claimSchedule,
  forgetScheduleClaims,
  mayBeClaimed,
  noteFailure,
  releaseSchedule,
  renewSchedule,
  type Schedule,
} from '../store/schedules.ts';
import { deleteInfoIf, findInfo } from '../store/store-info.ts';
import { mergeText } from '../store/word-index/merges.ts';
import { purgeDeliveries } from '../store/webhooks.ts';
import { checkpointLog, unmovedLogBytes } from '../store/write-ahead-log.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';
import { SECTORS } from '../types.ts';
import { backUp } from './back-up.ts';
import { addLeftOutWords } from './add-left-out-words.ts';
import { coarsenVectors } from './coarsen-vectors.ts';
import { conclusionSchedules } from './conclusion-schedules.ts';
import { fitToTexts } from './fit-to-texts.ts';
import { learnSectors } from './learn-sectors.ts';
import { tendReembed } from './tend-reembed.ts';

/** What the upkeep of a tenant's file works with. */
export interface MaintenanceContext {
  /** Returns the tenant's file on a connection that may write. It is called anew after each await. */
  readonly open: () => OpenTenant;
  readonly config: Config;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Ends the work between two slices when it is aborted: the work then rejects with an AbortError. */
  readonly signal?: AbortSignal | undefined;
  /** Called between two slices; within a schedule it renews the schedule's claim. */
  readonly onPause?: (() => void) | undefined;
}

/** Most memories whose salience one commit refreshes. */
const DECAY_SLICE = 2_000;
/** Most memories that one commit archives; few, as each row is written again with its text. */
const ARCHIVE_SLICE = 100;
/** Most rows that one commit purges. */
const PURGE_SLICE = 500;
/** Pause between two slices (ms), in which other connections write. */
const PAUSE_MS = 1;
/** Size from which on a write-ahead log is moved into the database, bytes. */
const CHECKPOINT_WAL_BYTES = 4 * 1024 * 1024;
/** Size from which on a write-ahead log is emptied under the write lock, bytes. */
const TRUNCATE_WAL_BYTES = 32 * 1024 * 1024;
/** Pages of the word index that one commit merges. */
const MERGE_PAGES = 64;

/** Returns the schedules of a tenant's file with their periods, in the order in which they run. */
function schedules(config: Config): readonly RunnableSchedule[] {
  const atOnce = { waitsAPeriod: false };
  const later = { waitsAPeriod: true }; // These have nothing to do in a new file.
  return [
    { name: 'decay', everyMs: config.OM_DECAY_INTERVAL_MINUTES * 60_000, ...later, run: decayMemories },
    { name: 'prune', everyMs: 7 * DAY_MS, ...later, run: pruneEdges },
    { name: 'expire', everyMs: 60_000, ...atOnce, run: expireMemories },
    { name: 'purge', everyMs: 600_000, ...atOnce, run: purgeFinished },
    { name: 'optimize', everyMs: DAY_MS, ...later, run: mergeWords },
    // This runs at every look; looks are about 15 s apart.
    { name: 'documents', everyMs: 10_000, ...atOnce, run: tendDocuments },
    // This looks whether enough has changed, and costs nothing if it has not.
    { name: 'calibrate', everyMs: 60_000, ...atOnce, run: (context) => fitToTexts(context, () => yieldTurn(context)) },
    // This looks at the vectors that were stored since it looked last.
    { name: 'precision', everyMs: 60_000, ...atOnce, run: coarsenVectors },
    // This reads a note once the word index is complete.
    { name: 'words', everyMs: 60_000, ...atOnce, run: addLeftOutWords },
    { name: 'sectors', everyMs: DAY_MS, ...later, run: learnSectors },
    { name: 'reembed', everyMs: 10_000, ...atOnce, run: async (context) => tendReembed(context) },
    ...conclusionSchedules(config, yieldTurn),
    // The last, as it takes the longest.
    ...(config.OM_BACKUP_EVERY === undefined
      ? []
      : [{ name: 'backup', everyMs: config.OM_BACKUP_EVERY, ...atOnce, backsOff: true, run: backUp }]),
  ];
}

/** Returns the names of the schedules that the settings ask for, as files and metrics use them. */
export function scheduleNames(config: Config): string[] {
  return schedules(config).map(({ name }) => name);
}

interface RunnableSchedule extends Schedule {
  readonly run: (context: MaintenanceContext) => Promise<unknown>;
}

/**
 * Runs the schedules of a file that are due and that no other process runs, one after the other. A schedule that fails
 * is logged and stays due, and the others still run; after an abort no further one begins. A timer or a job scheduler
 * in Redis only says when to look; the file says which schedules are due.
 * @returns the names of the schedules that completed; none if none was due
 */
export async function runDueSchedules(context: MaintenanceContext): Promise<string[]> {
  const ran: string[] = [];
  for (const schedule of schedules(context.config)) {
    if (context.signal?.aborted) break;
    try {
      if (await runIfDue(context, schedule)) ran.push(schedule.name);
    } catch (error) {
      if (!context.signal?.aborted)
        context.logger.error({ schedule: schedule.name, error: serialiseError(error) }, 'schedule_failed');
    }
  }
  return ran;
}

async function runIfDue(context: MaintenanceContext, schedule: RunnableSchedule): Promise<boolean> {
  const { clock, config } = context;
  const { name } = schedule;
  const owner = uuidv7();
  const claim = () => ({ name, owner, now: clock.now(), leaseMs: config.OM_LEASE_MS });
  const { store } = context.open();
  if (!mayBeClaimed(store, schedule, claim())) return false;
  const begun = claim();
  if (!store.write(() => claimSchedule(store, schedule, begun))) return false;

  let renewedAt = begun.now;
  const onPause = () => {
    if (Math.abs(clock.now() - renewedAt) < config.OM_LEASE_MS / 4) return;
    renewedAt = clock.now();
    const { store } = context.open();
    store.write(() => renewSchedule(store, claim()));
  };
  let ranAt: number | undefined;
  let failed = false;
  try {
    await schedule.run({ ...context, onPause });
    ranAt = begun.now;
    context.metrics.scheduleRuns.inc({ schedule: name, outcome: 'ok' });
  } catch (error) {
    failed = !context.signal?.aborted;
    if (failed) context.metrics.scheduleRuns.inc({ schedule: name, outcome: 'failed' });
    throw error;
  } finally {
    const { store } = context.open();
    store.write(() => {
      if (failed && schedule.backsOff) noteFailure(store, claim());
      releaseSchedule(store, { name, owner, ranAt });
    });
  }
  return true;
}

/** Pauses between two slices, so that others can write and the claim is renewed. Rejects if the work was aborted. */
async function yieldTurn({ signal, onPause }: MaintenanceContext): Promise<void> {
  await pause(PAUSE_MS, undefined, { signal });
  onPause?.();
}

/** Merges the segments of the word index into one in short commits, as queries read each segment. */
async function mergeWords(context: MaintenanceContext): Promise<void> {
  for (let start = true; ; start = false) {
    const { store } = context.open();
    if (!store.write(() => mergeText(store, { start, pages: MERGE_PAGES }))) return;
    await yieldTurn(context);
  }
}

/**
 * Runs the decay job over all memories, in short commits: refreshes the cached salience, moves anchors to a λ that the
 * settings changed, and archives memories that faded below `OM_ARCHIVE_BELOW`. Every value follows from an anchor and
 * the time, so running it again changes nothing.
 * @returns the number of memories whose cached salience was computed again, whether or not it is another one now
 */
export async function decayMemories(context: MaintenanceContext): Promise<number> {
  const { config, clock } = context;
  let changed = 0;
  for (let after = 0; ;) {
    const { store } = context.open();
    const now = clock.now();
    const slice = store.write(() => {
      const last = sliceEnd(store, after, DECAY_SLICE);
      if (last === undefined) return undefined;
      for (const sector of SECTORS) {
        reanchorLambda(store, {
          afterMemoryNo: after,
          last,
          sector,
          decayLambda: decayLambdaOf(sector, config.OM_DECAY_LAMBDA),
          now,
        });
      }
      return refreshSalience(store, after, DECAY_SLICE, now);
    });
    if (slice === undefined) break;
    changed += slice.changed;
    await archiveSlice(context, { afterMemoryNo: after, last: slice.last });
    after = slice.last;
    await yieldTurn(context);
  }
  context.metrics.decayedMemories.inc(changed);
  context.logger.info({ changed }, 'decay_done');
  return changed;
}

/** Archives the faded memories of a slice, above `afterMemoryNo` up to `last`, in short commits. */
async function archiveSlice(
  context: MaintenanceContext,
  slice: { readonly afterMemoryNo: number; readonly last: number },
): Promise<void> {
  const { open, config, clock, metrics } = context;
  const step = { ...slice, below: config.OM_ARCHIVE_BELOW, limit: ARCHIVE_SLICE };
  for (let archived = config.OM_ARCHIVE_BELOW > 0 ? ARCHIVE_SLICE : 0; archived === ARCHIVE_SLICE;) {
    const { store } = open();
    archived = store.write(() => archiveFaded(store, { ...step, now: clock.now() }));
    metrics.archivedMemories.inc(archived);
    if (archived === ARCHIVE_SLICE) await yieldTurn(context);
  }
}

async function pruneEdges(context: MaintenanceContext): Promise<void> {
  const { store } = context.open();
  context.metrics.prunedWaypoints.inc(store.write(() => pruneWaypoints(store)));
}

/**
 * Erases expired memories, which every read hides already, in short commits, and hides expired documents, which
 * `tendDocuments` erases.
 * @returns the number of memories erased
 */
export async function expireMemories(context: MaintenanceContext): Promise<number> {
  let erased = 0;
  for (;;) {
    const { store } = context.open();
    const receipt = store.write(() => deleteExpired(writeContextOf(context), { limit: ERASE_SLICE }));
    erased += receipt.memories;
    if (receipt.memories < ERASE_SLICE) break;
    await yieldTurn(context);
  }
  context.metrics.expiredMemories.inc(erased);
  return erased;
}

/**
 * Ends documents whose last chunk ended unnoticed, erases what is left of replaced, cancelled and deleted ones, and
 * removes uploaded files that were read or that no document owns.
 */
export async function tendDocuments(context: MaintenanceContext): Promise<void> {
  settleForgotten(context.open().store, context.clock.now());
  await eraseAbandonedDocuments(context);
  const { store } = context.open();
  removeReadUploads(store);
  sweepUploads(store.path, listUploads(store), context.clock.now());
}

/** Erases what is left of deleted, replaced and cancelled documents, in short commits. */
export async function eraseAbandonedDocuments(context: MaintenanceContext): Promise<void> {
  for (;;) {
    const { store } = context.open();
    if (!hasAbandoned(store)) return;
    const slice = store.write(() => eraseAbandoned(writeContextOf(context), { limit: ERASE_SLICE }));
    if (slice.isDone) return;
    await yieldTurn(context);
  }
}

/** Erases the items of logs that were cleared or erased, where a process ended before it had. */
async function eraseAbandonedLogs(context: MaintenanceContext): Promise<void> {
  for (;;) {
    const { store } = context.open();
    if (!hasAbandonedLogs(store)) return;
    store.write(() => eraseLogItems(writeContextOf(context), { limit: ERASE_SLICE }));
    await yieldTurn(context);
  }
}

function writeContextOf({ open, config, clock }: MaintenanceContext): WriteContext {
  const { store, indexes } = open();
  return { store, indexes, config, now: clock.now(), newId: uuidv7, backlog: { atMost: 0 }, writtenBy: null };
}

async function purgeFinished(context: MaintenanceContext): Promise<void> {
  const { config, clock } = context;
  const before = clock.now() - config.OM_JOB_RETENTION_HOURS * 3_600_000;
  for (const purge of [purgeJobs, purgeStoredReplies, purgeLogOperations, purgeEmbedLogs, purgeDeliveries]) {
    await inSlices(context, (store) => purge(store, before, PURGE_SLICE));
  }
  const daysAgo = (days: number) => clock.now() - days * DAY_MS;
  for (const purge of [purgeAudit, purgeErasures])
    await inSlices(context, (store) => purge(store, daysAgo(config.OM_AUDIT_DAYS), PURGE_SLICE));
  const events = { before: daysAgo(config.OM_EVENT_DAYS), rows: config.OM_EVENT_ROWS };
  await inSlices(context, (store) => purgeEvents(store, { ...events, limit: PURGE_SLICE }));
  await inSlices(context, (store) => purgeRecalls(store, daysAgo(config.OM_RECALL_DAYS), PURGE_SLICE));
  await eraseAbandonedLogs(context);
  removeFailedUploads(context.open().store, before);
}

/** Repeats a purge, which deletes at most `PURGE_SLICE` rows, until it finds fewer. */
async function inSlices(context: MaintenanceContext, purge: (store: Store) => number): Promise<void> {
  for (;;) {
    const { store } = context.open();
    if (store.write(() => purge(store)) < PURGE_SLICE) return;
    await yieldTurn(context);
  }
}

/**
 * Takes back the jobs of workers whose leases ran out, so that they are claimed again, as suspects. A job whose worker
 * died three times while the job ran alone is dead. It counts and logs them.
 * @param options.everyOwner takes back all claimed jobs and schedules, whatever their leases; only right after a start,
 *   when no other process can have claimed any
 */
export function recoverJobs(context: MaintenanceContext, { everyOwner }: { everyOwner: boolean }): void {
  const { store } = context.open();
  const times = { now: context.clock.now(), leaseMs: context.config.OM_LEASE_MS };
  if (!everyOwner && !hasLapsedLease(store, times)) return; // Nearly every call ends here, without the write lock.
  const recovery = store.write(() => {
    if (everyOwner) forgetScheduleClaims(store);
    return recoverLeases(store, { ...times, everyOwner });
  });
  if (recovery.requeued + recovery.dead === 0) return;
  countRecovery(context.metrics, recovery);
  context.logger.warn({ ...recovery }, 'jobs_recovered');
}

/**
 * Moves a write-ahead log into the database if 4 MiB or more of it are not moved yet. That passive checkpoint holds
 * nobody up. A log of 32 MiB or more, which was never completely moved, is emptied under the write lock. Smaller logs
 * are left alone: pages that are moved early are moved again after their next change.
 */
export function checkpoint(context: MaintenanceContext): void {
  const { store } = context.open();
  const bytes = walBytes(store.path);
  if (bytes >= TRUNCATE_WAL_BYTES) moveLog(context, 'TRUNCATE');
  else if (bytes >= CHECKPOINT_WAL_BYTES && unmovedLogBytes(store) >= CHECKPOINT_WAL_BYTES) moveLog(context, 'PASSIVE');
}

/** Runs a checkpoint and counts it. @returns whether the whole log is in the database now */
function moveLog({ open, metrics }: MaintenanceContext, mode: 'PASSIVE' | 'TRUNCATE'): boolean {
  const startedAt = performance.now();
  const { store } = open();
  if (store.words !== null) return true; // The log is PostgreSQL's.
  const result = checkpointLog(store, mode);
  metrics.checkpointDurations.observe((performance.now() - startedAt) / 1000);
  const isBusy = result?.busy !== 0;
  const isComplete = !isBusy && result.log === result.checkpointed;
  metrics.checkpoints.inc({ outcome: isBusy ? 'busy' : isComplete ? 'complete' : 'partial' });
  return isComplete;
}

/**
 * Removes the last traces of deleted text: merges the word index, whose old segments still hold the deleted words,
 * and empties the log, which still holds the deleted pages. The pages of the file itself are cleaned by
 * `secure_delete` as rows are deleted. If a reader is in the way, the next call tries again.
 * @returns whether there was something to clean and all of that was cleaned; false if nothing was erased
 */
export async function cleanAfterErase(context: MaintenanceContext): Promise<boolean> {
  const mark = findInfo(context.open().store, ERASE_PENDING);
  if (mark === undefined) return false;
  await mergeWords(context);
  const { store } = context.open();
  if (!moveLog(context, 'TRUNCATE')) return false; // A reader still uses an old snapshot; the next round tries again.
  store.write(() => {
    // Only if nothing was erased meanwhile.
    deleteInfoIf(store, ERASE_PENDING, mark);
  });
  return true;
}
