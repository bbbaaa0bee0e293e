import fs from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../config.ts';
import { decayLambdaOf } from '../dynamics.ts';
import type { ScheduleName as QueuedSchedule } from '../jobs.ts';
import type { Metrics } from '../metrics.ts';
import type { OpenTenant } from '../open-tenant.ts';
import type { Clock, Logger } from '../ports.ts';
import { reanchorLambda, refreshSalience, sliceEnd } from '../store/dynamics.ts';
import { pruneWaypoints } from '../store/edges.ts';
import { purgeEmbedLogs } from '../store/embeddings.ts';
import { purgeStoredReplies } from '../store/idempotency.ts';
import { purgeJobs, recoverLeases } from '../store/jobs.ts';
import { archiveFaded } from '../store/revisions.ts';
import { findInfo, putInfo } from '../store/store-info.ts';
import { mergeText } from '../store/text.ts';
import { SECTORS } from '../types.ts';
import { calibrateScores } from './calibrate-scores.ts';
import { deleteExpired, ERASE_PENDING } from './erase.ts';

export interface MaintenanceContext {
  readonly open: () => OpenTenant;
  readonly config: Config;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

const DECAY_SLICE = 2_000;
const ARCHIVE_SLICE = 100;
const ERASE_SLICE = 100;
const PURGE_SLICE = 500;
const PAUSE_MS = 1;
const DAY_MS = 86_400_000;
const CHECKPOINT_WAL_BYTES = 4 * 1024 * 1024;
const TRUNCATE_WAL_BYTES = 32 * 1024 * 1024;
const MERGE_PAGES = 64;

/** The schedules of a tenant, their period in ms and what they do. When each ran last is kept in the file. */
function schedules(config: Config) {
  return {
    decay: { everyMs: config.OM_DECAY_INTERVAL_MINUTES * 60_000, run: decayMemories },
    prune: { everyMs: 7 * DAY_MS, run: pruneEdges },
    expire: { everyMs: 60_000, run: expireMemories },
    purge: { everyMs: 600_000, run: purgeFinished },
    optimize: { everyMs: DAY_MS, run: optimizeWords },
    // Looks whether enough has changed; costs nothing where not.
    calibrate: { everyMs: 60_000, run: async (context: MaintenanceContext) => void calibrateScores(context) },
  };
}

/** What has nothing to do in a new file. */
const WAITS_A_PERIOD: ReadonlySet<string> = new Set(['decay', 'prune', 'optimize']);

export type ScheduleName = keyof ReturnType<typeof schedules>;

/** Runs what is due. A schedule that never ran counts from the first look, so that a new file decays after a day, not at once. */
export async function runDueSchedules(context: MaintenanceContext): Promise<ScheduleName[]> {
  const ran: ScheduleName[] = [];
  for (const [name, schedule] of Object.entries(schedules(context.config))) {
    const { store } = context.open();
    const now = context.clock.now();
    const last = Number(findInfo(store, `last_${name}`) ?? Number.NaN);
    // A clock that was set back must not hold up a schedule until it catches up.
    const due = Number.isNaN(last) ? !WAITS_A_PERIOD.has(name) : now - last >= schedule.everyMs || last > now;
    if (due) {
      await schedule.run(context);
      ran.push(name as ScheduleName);
    }
    if (due || Number.isNaN(last))
      context.open().store.write(() => putInfo(context.open().store, `last_${name}`, String(now)));
  }
  return ran;
}

/**
 * Runs one schedule because a queue says that its time has come. What another process ran within half its period is passed over, since
 * a queue that was restored may ask twice.
 */
export async function runSchedule(context: MaintenanceContext, name: QueuedSchedule): Promise<void> {
  if (name === 'reconcile') return recoverJobs(context, { everyOwner: false });
  if (name === 'checkpoint') return checkpoint(context);
  const { everyMs, run } = schedules(context.config)[name];
  const { store } = context.open();
  const now = context.clock.now();
  const last = Number(findInfo(store, `last_${name}`) ?? 0);
  if (now - last < everyMs / 2 && last <= now) return;
  await run(context);
  context.open().store.write(() => putInfo(context.open().store, `last_${name}`, String(now)));
}

/** How often each schedule runs (ms). */
export function schedulePeriods(config: Config): Readonly<Record<QueuedSchedule, number>> {
  const periods = Object.entries(schedules(config)).map(([name, { everyMs }]) => [name, everyMs] as const);
  return { ...Object.fromEntries(periods), reconcile: 15_000, checkpoint: 15_000 } as Record<QueuedSchedule, number>;
}

/** Merges the segments of the word index, which queries read one by one, in short steps. */
async function optimizeWords({ open }: MaintenanceContext): Promise<void> {
  for (let start = true; ; start = false) {
    const { store } = open();
    if (!store.write(() => mergeText(store, { start, pages: MERGE_PAGES }))) return;
    await pause(PAUSE_MS);
  }
}

/**
 * The decay job: refreshes the cached salience, moves anchors to a λ that the settings changed, archives what has faded. Every value
 * follows from an anchor and `now`, so running it again changes nothing.
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
          afterSeq: after,
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
    await archiveSlice(context, { afterSeq: after, last: slice.last });
    after = slice.last;
    await pause(PAUSE_MS);
  }
  context.metrics.decayedMemories.inc(changed);
  context.logger.info({ changed }, 'decay_done');
  return changed;
}

/** In short steps, as each row is written anew with its text. */
async function archiveSlice(
  { open, config, clock }: MaintenanceContext,
  slice: { readonly afterSeq: number; readonly last: number },
): Promise<void> {
  const step = { ...slice, below: config.OM_ARCHIVE_BELOW, limit: ARCHIVE_SLICE };
  for (let archived = config.OM_ARCHIVE_BELOW > 0 ? ARCHIVE_SLICE : 0; archived === ARCHIVE_SLICE;) {
    const { store } = open();
    archived = store.write(() => archiveFaded(store, { ...step, now: clock.now() }));
    if (archived === ARCHIVE_SLICE) await pause(PAUSE_MS);
  }
}

async function pruneEdges(context: MaintenanceContext): Promise<void> {
  const { store } = context.open();
  context.metrics.prunedWaypoints.inc(store.write(() => pruneWaypoints(store)));
}

/** Erases what has expired. It is hidden from every read from the moment itself; this makes it go. */
export async function expireMemories(context: MaintenanceContext): Promise<number> {
  let erased = 0;
  for (;;) {
    const { store, indexes } = context.open();
    const write = {
      store,
      indexes,
      config: context.config,
      now: context.clock.now(),
      newId: uuidv7,
      backlog: { atMost: 0 },
    };
    const receipt = store.write(() => deleteExpired(write, { limit: ERASE_SLICE }));
    erased += receipt.memories;
    if (receipt.memories < ERASE_SLICE) break;
    await pause(PAUSE_MS);
  }
  context.metrics.expiredMemories.inc(erased);
  return erased;
}

async function purgeFinished(context: MaintenanceContext): Promise<void> {
  const before = context.clock.now() - context.config.OM_JOB_RETENTION_HOURS * 3_600_000;
  for (const purge of [purgeJobs, purgeStoredReplies, purgeEmbedLogs]) {
    for (;;) {
      const { store } = context.open();
      if (store.write(() => purge(store, before, PURGE_SLICE)) < PURGE_SLICE) break;
      await pause(PAUSE_MS);
    }
  }
}

/** Takes back jobs whose worker fell silent; after a start, all that are still leased, as nobody else may hold any. */
export function recoverJobs(context: MaintenanceContext, { everyOwner }: { everyOwner: boolean }): void {
  const { store } = context.open();
  const recovery = store.write(() => recoverLeases(store, { now: context.clock.now(), everyOwner }));
  if (recovery.requeued + recovery.dead === 0) return;
  context.metrics.finishedJobs.inc({ state: 'dead' }, recovery.dead);
  context.logger.warn({ ...recovery }, 'jobs_recovered');
}

/**
 * Moves the write-ahead log into the database. Passive while it is small, as that holds nobody up; a log that grew past 32 MB because
 * it was never caught up with is emptied under the write lock.
 */
export function checkpoint(context: MaintenanceContext): void {
  const { store } = context.open();
  const bytes = walBytes(store.path);
  if (bytes < CHECKPOINT_WAL_BYTES) return;
  store.db.pragma(`wal_checkpoint(${bytes < TRUNCATE_WAL_BYTES ? 'PASSIVE' : 'TRUNCATE'})`);
}

export function walBytes(file: string): number {
  return fs.statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * After deletes: merges the word index, whose old segments still hold the deleted words, and empties the log, which still holds the
 * deleted pages. The file itself was cleaned by `secure_delete` as rows went.
 */
export async function cleanAfterErase(context: MaintenanceContext): Promise<boolean> {
  const mark = findInfo(context.open().store, ERASE_PENDING);
  if (mark === undefined) return false;
  for (let start = true; ; start = false) {
    const { store } = context.open();
    if (!store.write(() => mergeText(store, { start, pages: MERGE_PAGES }))) break;
    await pause(PAUSE_MS);
  }
  const { store } = context.open();
  const [result] = store.db.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[];
  if (result?.busy !== 0) return false; // A reader is still on an old snapshot: the next round tries again.
  store.write(() => {
    // Only if nothing was erased meanwhile.
    store.prepare('DELETE FROM store_info WHERE key = ? AND value = ?').run(ERASE_PENDING, mark);
  });
  return true;
}
