import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../config.ts';
import { DAY_MS } from '../dynamics.ts';
import { serialiseError } from '../errors.ts';
import { firstExpiry } from '../store/expiry.ts';
import type { Store } from '../store/open-store.ts';
import {
  claimSchedule,
  mayBeClaimed,
  noteFailure,
  prefetchSchedules,
  releaseSchedule,
  renewSchedule,
  type Schedule,
} from '../store/schedules.ts';
import { addLeftOutWords } from './add-left-out-words.ts';
import { runScheduledBackup } from './run-scheduled-backup.ts';
import { coarsenVectors } from './coarsen-vectors.ts';
import { conclusionSchedules } from './conclusion-schedules.ts';
import { decayMemories } from './decay-memories.ts';
import { expireMemories } from './expire-memories.ts';
import { fitToTexts } from './fit-to-texts.ts';
import { joinWords } from './join-words.ts';
import { learnSectors } from './learn-sectors.ts';
import { type MaintenanceContext, yieldTurn } from './maintenance-context.ts';
import { mergeWords } from './merge-words.ts';
import { pruneEdges } from './prune-edges.ts';
import { purgeFinished } from './purge-finished.ts';
import { firstBreak, tendDocuments } from './tend-documents.ts';
import { tendReembed } from './tend-reembed.ts';

/**
 * Time for which a schedule that found nothing to do rests at most while nothing is written to the tenant (ms). It is
 * the period of `purge`, which cannot rest, as it deletes by age.
 */
const REST_MS = 600_000;
/**
 * Longest rest of the schedule `reembed` while nothing is written to the tenant (ms). Its run renews the note that a
 * process with these settings looks after the tenant; after 300 s without that, the process counts as gone.
 */
const TENDED_MOST_MS = 120_000;

/** Returns the schedules of a tenant's file with their periods, in the order in which they run. */
export function schedules(config: Config): readonly RunnableSchedule[] {
  const atOnce = { waitsAPeriod: false };
  const rests = { restMs: REST_MS };
  const later = { waitsAPeriod: true }; // These have nothing to do in a new file.
  return [
    { name: 'decay', everyMs: config.OM_DECAY_INTERVAL_MINUTES * 60_000, ...later, run: decayMemories },
    { name: 'prune', everyMs: 7 * DAY_MS, ...later, run: (context) => pruneEdges(context, () => yieldTurn(context)) },
    { name: 'expire', everyMs: 60_000, ...atOnce, ...rests, firstWorkAt: firstExpiry, run: expireMemories },
    { name: 'purge', everyMs: 600_000, ...atOnce, run: purgeFinished },
    { name: 'optimize', everyMs: DAY_MS, ...later, run: mergeWords },
    // This runs at every look; looks are about 15 s apart.
    { name: 'documents', everyMs: 10_000, ...atOnce, ...rests, firstWorkAt: firstBreak, run: tendDocuments },
    // This looks whether enough has changed, and costs nothing if it has not.
    {
      ...{ name: 'calibrate', everyMs: 60_000, ...atOnce, ...rests },
      run: (context) => fitToTexts(context, () => yieldTurn(context)),
    },
    // This looks at the vectors that were stored since it looked last.
    { name: 'precision', everyMs: 60_000, ...atOnce, ...rests, run: coarsenVectors },
    // This reads a note once the word index is complete, and in PostgreSQL what blocks are to be joined.
    { name: 'words', everyMs: 60_000, ...atOnce, ...rests, run: tendWords },
    { name: 'sectors', everyMs: DAY_MS, ...later, run: (context) => learnSectors(context, () => yieldTurn(context)) },
    {
      name: 'reembed',
      everyMs: 10_000,
      ...atOnce,
      restMs: TENDED_MOST_MS,
      run: async (context) => tendReembed(context),
    },
    ...conclusionSchedules(config, yieldTurn),
    // The last, as it takes the longest.
    ...(config.OM_BACKUP_EVERY === undefined
      ? []
      : [{ name: 'backup', everyMs: config.OM_BACKUP_EVERY, ...atOnce, backsOff: true, run: runScheduledBackup }]),
  ];
}

/** Adds words that are missing in the word index, and joins its old blocks. */
async function tendWords(context: MaintenanceContext): Promise<void> {
  await addLeftOutWords(context);
  await joinWords(context);
}

/** Returns the names of the schedules that the settings enable, as files and metrics use them. */
export function scheduleNames(config: Config): string[] {
  return schedules(config).map(({ name }) => name);
}

export interface RunnableSchedule extends Schedule {
  /**
   * Longest time for which the schedule rests after a run that found nothing to do, from the beginning of that run and
   * while nothing is written to the tenant (ms); left out for one that never rests, since time alone gives it work.
   */
  readonly restMs?: number;
  /**
   * Returns the time at which it has something to do although nothing was written, Unix ms; Infinity for never. `now`
   * is the present time, Unix ms.
   */
  readonly firstWorkAt?: (store: Store, now: number) => number;
  readonly run: (context: MaintenanceContext) => Promise<unknown>;
}

/**
 * One look at the schedules of a tenant that is in PostgreSQL, where a note in its row says when the next look is due.
 */
export interface ScheduleLook {
  /** Times (Unix ms) by the name of a schedule until which it rests, as the last note says. */
  readonly rests: Readonly<Record<string, number>>;
  /** Time at which each schedule that came to its end began, by its name (Unix ms). */
  readonly ran: Map<string, number>;
  /** Number of commits of this look that changed nothing on which the work of a schedule depends. */
  notes: number;
}

/**
 * Runs the schedules of a file that are due and that no other process runs, one after the other. A schedule that fails
 * is logged and stays due (one that `backsOff` after a pause), and the others still run; after an abort no further one
 * begins. Timers and queues only say when to call this; the file says which schedules are due.
 * @param look where the look of a tenant in PostgreSQL is recorded
 * @returns the names of the schedules that completed; empty if none was due, or if all that were due failed
 * @throws what opening the file throws
 */
export async function runDueSchedules(context: MaintenanceContext, look = createLook()): Promise<string[]> {
  for (const schedule of listDue(context, look)) {
    if (context.signal?.aborted) break;
    try {
      const ranAt = await runIfDue(context, schedule, look);
      if (ranAt !== undefined) look.ran.set(schedule.name, ranAt);
    } catch (error) {
      if (!context.signal?.aborted)
        context.logger.error({ schedule: schedule.name, error: serialiseError(error) }, 'schedule_failed');
    }
  }
  return [...look.ran.keys()];
}

/** Begins a look. @param rests as in `ScheduleLook`; without it no schedule rests */
export function createLook(rests: ScheduleLook['rests'] = {}): ScheduleLook {
  return { rests, ran: new Map(), notes: 0 };
}

/**
 * Lists the schedules that may be due. In PostgreSQL it finds out with one round trip which are; in a file each is
 * looked at when its turn comes.
 */
function listDue({ open, config, clock }: MaintenanceContext, { rests }: ScheduleLook): readonly RunnableSchedule[] {
  const awake = schedules(config).filter(({ name }) => clock.now() >= (rests[name] ?? 0));
  const { store } = open();
  if (store.ahead === null) return awake;
  const times = { now: clock.now(), leaseMs: config.OM_LEASE_MS };
  return store.read(() => {
    prefetchSchedules(store, awake);
    return awake.filter((schedule) => mayBeClaimed(store, schedule, times));
  });
}

/** Runs a schedule if it is due. @returns the time at which a run began that came to its end; undefined without one */
async function runIfDue(
  context: MaintenanceContext,
  schedule: RunnableSchedule,
  look: ScheduleLook,
): Promise<number | undefined> {
  const { clock, config } = context;
  const { name } = schedule;
  const owner = uuidv7();
  const claim = () => ({ name, owner, now: clock.now(), leaseMs: config.OM_LEASE_MS });
  const { store } = context.open();
  const note = <T>(work: (store: Store) => T): T => {
    const { store: current } = context.open();
    const done = current.write(() => work(current));
    look.notes += 1;
    return done;
  };
  // In PostgreSQL `listDue` has looked, and the claim looks again.
  if (store.ahead === null && !mayBeClaimed(store, schedule, claim())) return undefined;
  const begun = claim();
  if (!note((current) => claimSchedule(current, schedule, begun))) return undefined;

  let renewedAt = begun.now;
  const onPause = () => {
    if (Math.abs(clock.now() - renewedAt) < config.OM_LEASE_MS / 4) return;
    renewedAt = clock.now();
    note((current) => renewSchedule(current, claim()));
  };
  let ranAt: number | undefined;
  let failed = false;
  try {
    await schedule.run({ ...context, onPause, onNote: () => (look.notes += 1) });
    ranAt = begun.now;
    context.metrics.scheduleRuns.inc({ schedule: name, outcome: 'ok' });
  } catch (error) {
    failed = !context.signal?.aborted;
    if (failed) context.metrics.scheduleRuns.inc({ schedule: name, outcome: 'failed' });
    throw error;
  } finally {
    note((current) => {
      if (failed && schedule.backsOff) noteFailure(current, claim());
      releaseSchedule(current, { name, owner, ranAt });
    });
  }
  return ranAt;
}
