import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../config.ts';
import { DAY_MS } from '../dynamics.ts';
import { serialiseError } from '../errors.ts';
import {
  claimSchedule,
  mayBeClaimed,
  noteFailure,
  releaseSchedule,
  renewSchedule,
  type Schedule,
} from '../store/schedules.ts';
import { addLeftOutWords } from './add-left-out-words.ts';
import { backUp } from './back-up.ts';
import { coarsenVectors } from './coarsen-vectors.ts';
import { conclusionSchedules } from './conclusion-schedules.ts';
import { decayMemories } from './decay-memories.ts';
import { expireMemories } from './expire-memories.ts';
import { fitToTexts } from './fit-to-texts.ts';
import { learnSectors } from './learn-sectors.ts';
import { type MaintenanceContext, yieldTurn } from './maintenance-context.ts';
import { mergeWords } from './merge-words.ts';
import { pruneEdges } from './prune-edges.ts';
import { purgeFinished } from './purge-finished.ts';
import { tendDocuments } from './tend-documents.ts';
import { tendReembed } from './tend-reembed.ts';

/** Returns the schedules of a tenant's file with their periods, in the order in which they run. */
function schedules(config: Config): readonly RunnableSchedule[] {
  const atOnce = { waitsAPeriod: false };
  const later = { waitsAPeriod: true }; // These have nothing to do in a new file.
  return [
    { name: 'decay', everyMs: config.OM_DECAY_INTERVAL_MINUTES * 60_000, ...later, run: decayMemories },
    { name: 'prune', everyMs: 7 * DAY_MS, ...later, run: (context) => pruneEdges(context, () => yieldTurn(context)) },
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

/** Returns the names of the schedules that the settings enable, as files and metrics use them. */
export function scheduleNames(config: Config): string[] {
  return schedules(config).map(({ name }) => name);
}

interface RunnableSchedule extends Schedule {
  readonly run: (context: MaintenanceContext) => Promise<unknown>;
}

/**
 * Runs the schedules of a file that are due and that no other process runs, one after the other. A schedule that fails
 * is logged and stays due (one that `backsOff` after a pause), and the others still run; after an abort no further one
 * begins. Timers and Redis only say when to call this; the file says which schedules are due.
 * @returns the names of the schedules that completed; empty if none was due
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
