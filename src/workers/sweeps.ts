import { setImmediate as yieldTurn, setTimeout as pause } from 'node:timers/promises';
import {
  type MaintenanceContext,
  type TenantPool,
  checkpoint,
  cleanAfterErase,
  recoverJobs,
  renewLeases,
  runDueSchedules,
} from '../engine/for-workers.ts';
import { serialiseError } from '../engine/index.ts';

/**
 * The care for tenants' files that no job asks for: once a second for each file that is open, and at each tick for all
 * files.
 */
export interface Sweeps {
  /**
   * Takes jobs back in all files: those of workers that died, or with `everyOwner` all that are under way, whoever
   * claimed them. A file that fails is logged and passed over.
   */
  recover(options: { readonly everyOwner: boolean }): Promise<void>;
  /**
   * Looks after all files and runs the schedules that are due there. A schedule that a stop breaks off is still due at
   * the next tick.
   */
  tick(): Promise<void>;
  /** Waits until nothing is under way any more. Call it after `signal` has aborted, as the sweeps end only then. */
  ended(): Promise<void>;
}

export interface SweepsOptions extends Omit<MaintenanceContext, 'open' | 'signal'> {
  readonly pool: TenantPool;
  /** Lists the file of every tenant that has one. */
  readonly listPaths: () => readonly string[];
  /** Lists the runs that work on a file, whose leases are renewed. */
  readonly ownersOf: (path: string) => readonly string[];
  /** Aborts when the worker stops. */
  readonly signal: AbortSignal;
}

/** Time between two sweeps over the open files, in which leases are renewed: far below the shortest lease. */
const SWEEP_MS = 1_000;

export function startSweeps(options: SweepsOptions): Sweeps {
  const { logger, pool, listPaths, signal } = options;
  const underWay = new Set<Promise<void>>();
  const cleaning = new Set<string>();
  const sweeping = sweepOpenFiles();

  return {
    recover: ({ everyOwner }) =>
      track(inTurn(listPaths, (path) => guarded('recover_failed', () => recoverJobs(contextOf(path), { everyOwner })))),
    tick: () => track(inTurn(listPaths, (path) => lookAfter(path, { isTick: true }))),
    ended: async () => void (await Promise.allSettled([sweeping, ...underWay])),
  };

  async function sweepOpenFiles(): Promise<void> {
    while (!signal.aborted) {
      await pause(SWEEP_MS, undefined, { signal }).catch(() => {});
      await inTurn(pool.openPaths, (path) => lookAfter(path, { isTick: false }));
    }
  }

  async function lookAfter(path: string, { isTick }: { readonly isTick: boolean }): Promise<void> {
    const context = contextOf(path);
    // The checkpoint comes first and by itself: on a disk that the log has filled every write fails, and only this can
    // make room.
    await guarded('checkpoint_failed', () => checkpoint(context));
    await guarded('sweep_failed', async () => {
      renewRuns(options, path);
      recoverJobs(context, { everyOwner: false });
      await clean(path, context);
      if (isTick) await runDueSchedules(context);
    });
  }

  /** A tick and a sweep may meet at a file: one of them is enough to clean it. */
  async function clean(path: string, context: MaintenanceContext): Promise<void> {
    if (cleaning.has(path)) return;
    cleaning.add(path);
    await cleanAfterErase(context).finally(() => cleaning.delete(path));
  }

  async function inTurn(list: () => readonly string[], work: (path: string) => Promise<void>): Promise<void> {
    let paths: readonly string[] = [];
    await guarded('sweep_failed', () => void (paths = list()));
    for (const path of paths) {
      // Opening files holds this thread up, and with many tenants nothing else would get a turn.
      await yieldTurn();
      if (signal.aborted) return;
      await work(path);
    }
  }

  function contextOf(path: string): MaintenanceContext {
    return { ...options, open: () => pool.get(path) };
  }

  async function track(work: Promise<void>): Promise<void> {
    underWay.add(work);
    await work.finally(() => underWay.delete(work));
  }

  async function guarded(event: string, work: () => unknown): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!signal.aborted) logger.error({ error: serialiseError(error) }, event);
    }
  }
}

/** Renews the leases of the runs that work on a file. */
function renewRuns({ config, clock, pool, ownersOf }: SweepsOptions, path: string): void {
  const owners = ownersOf(path);
  if (owners.length === 0) return;
  const { store } = pool.get(path);
  store.write(() => {
    for (const owner of owners) renewLeases(store, owner, clock.now() + config.OM_LEASE_MS);
  });
}
