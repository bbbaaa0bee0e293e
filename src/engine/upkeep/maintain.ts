import { setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import { deleteExpired, eraseAbandoned, ERASE_PENDING } from '../commands/erase.ts';
import { settleForgotten } from '../commands/settle-document.ts';
import type { WriteContext } from '../commands/write-context.ts';
import type { Config } from '../config.ts';
import { sweepUploads } from '../documents/uploads.ts';
import { decayLambdaOf } from '../dynamics.ts';
import { serialiseError } from '../errors.ts';
import { countRecovery, type Metrics } from '../metrics.ts';
import type { Clock, Logger } from '../ports.ts';
import { oweReflections } from '../steps/reflect.ts';
import { removeFailedUploads, removeReadUploads } from '../steps/remove-uploads.ts';
import { hasAbandoned, listUploads } from '../store/documents.ts';
import { reanchorLambda, refreshSalience, sliceEnd } from '../store/dynamics.ts';
import { pruneWaypoints } from '../store/edges.ts';
import { purgeCachedEmbeddings, purgeEmbedLogs } from '../store/embeddings.ts';
import { walBytes } from '../store/file-on-disk.ts';
import { purgeStoredReplies } from '../store/idempotency.ts';
import { hasLapsedLease, purgeJobs, recoverLeases } from '../store/jobs.ts';
import { archiveFaded } from '../store/revisions.ts';
import {
  claimSchedule,
  forgetScheduleClaims,
  mayBeClaimed,
  releaseSchedule,
  renewSchedule,
  type Schedule,
} from '../store/schedules.ts';
import { deleteInfoIf, findInfo } from '../store/store-info.ts';
import { mergeText } from '../store/word-index/merges.ts';
import { checkpointLog, unmovedLogBytes } from '../store/write-ahead-log.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';
import { SECTORS } from '../types.ts';
import { calibrateScores } from './calibrate-scores.ts';
import { tendReembed } from './reembed.ts';

export interface MaintenanceContext {
  readonly open: () => OpenTenant;
  readonly config: Config;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Breaks off between two slices, with an AbortError. */
  readonly signal?: AbortSignal | undefined;
  /** Called between two slices. */
  readonly onPause?: (() => void) | undefined;
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

/** The schedules of a tenant and their periods in ms. */
function schedules(config: Config): readonly RunnableSchedule[] {
  const atOnce = { waitsAPeriod: false };
  // What has nothing to do in a new file.
  const later = { waitsAPeriod: true };
  return [
    { name: 'decay', everyMs: config.OM_DECAY_INTERVAL_MINUTES * 60_000, ...later, run: decayMemories },
    { name: 'prune', everyMs: 7 * DAY_MS, ...later, run: pruneEdges },
    { name: 'expire', everyMs: 60_000, ...atOnce, run: expireMemories },
    { name: 'purge', everyMs: 600_000, ...atOnce, run: purgeFinished },
    { name: 'optimize', everyMs: DAY_MS, ...later, run: optimizeWords },
    // At every look, which are about 15 s apart.
    { name: 'documents', everyMs: 10_000, ...atOnce, run: tendDocuments },
    // Looks whether enough has changed; costs nothing where not.
    { name: 'calibrate', everyMs: 60_000, ...atOnce, run: async (context) => calibrateScores(context) },
    { name: 'reembed', everyMs: 10_000, ...atOnce, run: async (context) => tendReembed(context) },
    ...(config.OM_REFLECTION === 'llm'
      ? [
          {
            name: 'reflect',
            everyMs: config.OM_REFLECTION_INTERVAL_MINUTES * 60_000,
            ...atOnce,
            run: (context: MaintenanceContext) =>
              oweReflections(context, { newId: uuidv7, breathe: () => breathe(context) }),
          },
        ]
      : []),
  ];
}

/** As the files and the metrics call them. */
export function scheduleNames(config: Config): string[] {
  return schedules(config).map(({ name }) => name);
}

interface RunnableSchedule extends Schedule {
  readonly run: (context: MaintenanceContext) => Promise<unknown>;
}

/**
 * Runs what is due in a file and nobody runs yet. What fails or is broken off is still due afterwards, and spares the others. Told to look
 * by a timer, or by a job scheduler in Redis; that a schedule's time has come is said by the file.
 * @returns the names of those that came to their end
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
  try {
    await schedule.run({ ...context, onPause });
    ranAt = begun.now;
    context.metrics.scheduleRuns.inc({ schedule: name, outcome: 'ok' });
  } catch (error) {
    if (!context.signal?.aborted) context.metrics.scheduleRuns.inc({ schedule: name, outcome: 'failed' });
    throw error;
  } finally {
    const { store } = context.open();
    store.write(() => releaseSchedule(store, { name, owner, ranAt }));
  }
  return true;
}

/** Between two slices: others write, a stop is heard, and the claim is renewed. */
async function breathe({ signal, onPause }: MaintenanceContext): Promise<void> {
  await pause(PAUSE_MS, undefined, { signal });
  onPause?.();
}

/** Merges the segments of the word index, which queries read one by one, in short steps. */
async function optimizeWords(context: MaintenanceContext): Promise<void> {
  for (let start = true; ; start = false) {
    const { store } = context.open();
    if (!store.write(() => mergeText(store, { start, pages: MERGE_PAGES }))) return;
    await breathe(context);
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
    await breathe(context);
  }
  context.metrics.decayedMemories.inc(changed);
  context.logger.info({ changed }, 'decay_done');
  return changed;
}

/** In short steps, as each row is written anew with its text. */
async function archiveSlice(
  context: MaintenanceContext,
  slice: { readonly afterSeq: number; readonly last: number },
): Promise<void> {
  const { open, config, clock, metrics } = context;
  const step = { ...slice, below: config.OM_ARCHIVE_BELOW, limit: ARCHIVE_SLICE };
  for (let archived = config.OM_ARCHIVE_BELOW > 0 ? ARCHIVE_SLICE : 0; archived === ARCHIVE_SLICE;) {
    const { store } = open();
    archived = store.write(() => archiveFaded(store, { ...step, now: clock.now() }));
    metrics.archivedMemories.inc(archived);
    if (archived === ARCHIVE_SLICE) await breathe(context);
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
    const { store } = context.open();
    const receipt = store.write(() => deleteExpired(writeContextOf(context), { limit: ERASE_SLICE }));
    erased += receipt.memories;
    if (receipt.memories < ERASE_SLICE) break;
    await breathe(context);
  }
  context.metrics.expiredMemories.inc(erased);
  return erased;
}

/** Ends documents whose last chunk ended unnoticed, and erases what was replaced, given up or deleted. */
export async function tendDocuments(context: MaintenanceContext): Promise<void> {
  const { clock } = context;
  settleForgotten(context.open().store, clock.now());
  await eraseAbandonedDocuments(context);
  const { store } = context.open();
  removeReadUploads(store);
  sweepUploads(store.path, listUploads(store), clock.now());
}

/** Of documents, in short steps: what nobody sees any more. */
export async function eraseAbandonedDocuments(context: MaintenanceContext): Promise<void> {
  for (;;) {
    const { store } = context.open();
    if (!hasAbandoned(store)) return;
    const slice = store.write(() => eraseAbandoned(writeContextOf(context), { limit: ERASE_SLICE }));
    if (slice.isDone) return;
    await breathe(context);
  }
}

function writeContextOf({ open, config, clock }: MaintenanceContext): WriteContext {
  const { store, indexes } = open();
  return { store, indexes, config, now: clock.now(), newId: uuidv7, backlog: { atMost: 0 } };
}

async function purgeFinished(context: MaintenanceContext): Promise<void> {
  const before = context.clock.now() - context.config.OM_JOB_RETENTION_HOURS * 3_600_000;
  for (const purge of [purgeJobs, purgeStoredReplies, purgeEmbedLogs]) {
    for (;;) {
      const { store } = context.open();
      if (store.write(() => purge(store, before, PURGE_SLICE)) < PURGE_SLICE) break;
      await breathe(context);
    }
  }
  removeFailedUploads(context.open().store, before);
  await forgetVectors(context);
}

/** Vectors in the cache that no memory needed for so long, in short steps. */
async function forgetVectors(context: MaintenanceContext): Promise<void> {
  const before = context.clock.now() - context.config.OM_EMBED_CACHE_DAYS * DAY_MS;
  for (;;) {
    const { store } = context.open();
    if (store.write(() => purgeCachedEmbeddings(store, before, PURGE_SLICE)) < PURGE_SLICE) return;
    await breathe(context);
  }
}

/** Takes back what somebody who fell silent had claimed; after a start all that is claimed, as nobody else may claim anything. */
export function recoverJobs(context: MaintenanceContext, { everyOwner }: { everyOwner: boolean }): void {
  const { store } = context.open();
  const times = { now: context.clock.now(), leaseMs: context.config.OM_LEASE_MS };
  if (!everyOwner && !hasLapsedLease(store, times)) return; // Without the write lock, as nearly every time.
  const recovery = store.write(() => {
    if (everyOwner) forgetScheduleClaims(store);
    return recoverLeases(store, { ...times, everyOwner });
  });
  if (recovery.requeued + recovery.dead === 0) return;
  countRecovery(context.metrics, recovery);
  context.logger.warn({ ...recovery }, 'jobs_recovered');
}

/**
 * Moves the write-ahead log into the database. Passive while it is small, as that holds nobody up; a log that grew past 32 MB because
 * it was never caught up with is emptied under the write lock. What is moved earlier than it must be is moved once more with the next change
 * of the same pages.
 */
export function checkpoint(context: MaintenanceContext): void {
  const { store } = context.open();
  const bytes = walBytes(store.path);
  if (bytes >= TRUNCATE_WAL_BYTES) moveLog(context, 'TRUNCATE');
  else if (bytes >= CHECKPOINT_WAL_BYTES && unmovedLogBytes(store) >= CHECKPOINT_WAL_BYTES) moveLog(context, 'PASSIVE');
}

/** @returns whether all of the log is in the database now, and empty where it was to be */
function moveLog({ open, metrics }: MaintenanceContext, mode: 'PASSIVE' | 'TRUNCATE'): boolean {
  const startedAt = performance.now();
  const result = checkpointLog(open().store, mode);
  metrics.checkpointDurations.observe((performance.now() - startedAt) / 1000);
  const isBusy = result?.busy !== 0;
  const isComplete = !isBusy && result.log === result.checkpointed;
  metrics.checkpoints.inc({ outcome: isBusy ? 'busy' : isComplete ? 'complete' : 'partial' });
  return isComplete;
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
    await breathe(context);
  }
  const { store } = context.open();
  if (!moveLog(context, 'TRUNCATE')) return false; // A reader is still on an old snapshot: the next round tries again.
  store.write(() => {
    // Only if nothing was erased meanwhile.
    deleteInfoIf(store, ERASE_PENDING, mark);
  });
  return true;
}
