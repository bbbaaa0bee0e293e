import { setImmediate as yieldTurn, setTimeout as pause } from 'node:timers/promises';
import {
  type DueTenants,
  type MaintenanceContext,
  type TenantPool,
  checkpoint,
  cleanAfterErase,
  recoverJobs,
  renewLeases,
  runDueSchedules,
} from '../engine/for-workers.ts';
import { isStillUnreachable, serialiseError } from '../engine/index.ts';
import type { Runs } from './runs.ts';

/**
 * Upkeep of tenants' files. Every second each file that is open or has a run in progress gets a checkpoint of its log,
 * lease renewal, recovery of jobs and, if fewer than 4 files are being cleaned, clean-up; at each tick (every 15 s) all
 * files get them all, and the schedules that are due are run. With `dueTenants`, only files that need it or have a run
 * in progress are looked at. If the upkeep of a file fails, that is logged and the other files are still looked after.
 */
export interface Sweeps {
  /**
   * Makes claimed jobs due again in all files: those whose lease has ended or, with `everyOwner`, all claimed jobs. A
   * file that fails is logged and skipped.
   */
  recover(options: { readonly everyOwner: boolean }): Promise<void>;
  /**
   * Ends the leases of a run on the file at `path`, and makes its jobs due again as those of a worker that died. A
   * failure is logged; then the leases end at their time.
   * @param owner name of the run; its leases must no longer be renewed
   */
  takeBack(path: string, owner: string): Promise<void>;
  /**
   * Looks after all files and runs the schedules that are due there. A schedule that is interrupted by a stop is still
   * due at the next tick.
   */
  tick(): Promise<void>;
  /** Waits until all upkeep has ended. Call it after `signal` has aborted; before, the upkeep never ends. */
  ended(): Promise<void>;
}

export interface SweepsOptions extends Omit<MaintenanceContext, 'open' | 'signal'> {
  readonly pool: TenantPool;
  /**
   * Lists the paths of all tenants with data, by which `pool` opens them; in PostgreSQL, the paths that their files
   * would have. A tenant that moves to another database just now is left out.
   */
  readonly listPaths: () => readonly string[];
  /** Finds the tenants that need upkeep, where they are in PostgreSQL; null or left out if all are looked at. */
  readonly dueTenants?: DueTenants | null | undefined;
  /** The runs in progress, which own the leases that are renewed. */
  readonly runs: Pick<Runs, 'ownersOf' | 'paths'>;
  /** Aborts when the worker stops. */
  readonly signal: AbortSignal;
}

/**
 * Longest time between two sweeps of the files that are open or have a run in progress (ms); with a short `OM_LEASE_MS`
 * it is a third of a lease. Each sweep renews the leases of runs and makes jobs with a lapsed lease due again; other
 * files wait for the tick (`TICK`).
 */
const SWEEP_MS = 1_000;
/**
 * Number of files being cleaned at which a sweep begins to clean no further one, since they take turns with the renewal
 * of leases. A tick cleans its files nevertheless, one after the other.
 */
const MOST_CLEANED = 4;

export function startSweeps(options: SweepsOptions): Sweeps {
  const { pool, listPaths, runs, signal, clock, config, dueTenants = null } = options;
  const guarded = createGuard(options);
  const underWay = new Set<Promise<void>>();
  const cleaner = createCleaner();
  const contextOf = (path: string): MaintenanceContext => ({ ...options, open: () => pool.get(path) });
  const listInUse = () => pathsInUse(options);
  const sweeping = sweepFilesInUse();

  return {
    recover: ({ everyOwner }) =>
      track(inTurn(listPaths, (path) => guarded('recover_failed', () => recoverJobs(contextOf(path), { everyOwner })))),
    takeBack: (path, owner) => guarded('recover_failed', () => takeBackRun(contextOf(path), owner)),
    tick: () =>
      track(inTurn(listPaths, (path) => lookAfter(path, { isTick: true }), dueTenants?.beginTick(clock.now()))),
    ended: async () => void (await Promise.allSettled([sweeping, ...underWay])),
  };

  async function sweepFilesInUse(): Promise<void> {
    while (!signal.aborted) {
      await pause(Math.min(SWEEP_MS, config.OM_LEASE_MS / 3), undefined, { signal }).catch(() => {});
      await inTurn(listInUse, (path) => lookAfter(path, { isTick: false }), dueTenants?.beginSweep());
    }
  }

  async function lookAfter(path: string, { isTick }: { readonly isTick: boolean }): Promise<void> {
    const context = contextOf(path);
    // The checkpoint comes first and apart from the rest: if the log has filled the disk every write fails, and only a
    // checkpoint can make room.
    await guarded('checkpoint_failed', () => checkpoint(context));
    await guarded('sweep_failed', async () => {
      renewRuns(options, path);
      recoverJobs(context, { everyOwner: false });
      if (!isTick) return cleanAside(path, context);
      await cleaner.clean(path, context);
      if (dueTenants === null) await runDueSchedules(context);
      else await dueTenants.runSchedules(path, context);
    });
  }

  /** Begins to clean a file, unless 4 are being cleaned or the worker stops. Nobody waits: it may outlast a lease. */
  function cleanAside(path: string, context: MaintenanceContext): void {
    if (cleaner.isBusy() || signal.aborted) return;
    void track(guarded('sweep_failed', () => cleaner.clean(path, context)));
  }

  /** Does `work` on each listed file that is due or has a run in progress, one by one, until the worker stops. */
  async function inTurn(
    list: () => readonly string[],
    work: (path: string) => Promise<void>,
    isDue: (path: string) => boolean = () => true,
  ): Promise<void> {
    let paths: readonly string[] = [];
    const isNeeded = (path: string) => runs.ownersOf(path).length > 0 || isDue(path);
    await guarded('sweep_failed', () => void (paths = list().filter(isNeeded)));
    for (const path of paths) {
      // Opening files holds this thread up, and with many tenants nothing else would get a turn.
      await yieldTurn();
      if (signal.aborted) return;
      await work(path);
    }
  }

  async function track(work: Promise<void>): Promise<void> {
    underWay.add(work);
    await work.finally(() => underWay.delete(work));
  }
}

/**
 * Makes the function that runs `work` and, if it throws, logs the error under the name `event`. It never rejects.
 * Nothing is logged while the worker stops, or of a database whose first failure was logged already.
 */
function createGuard({ logger, signal }: Pick<SweepsOptions, 'logger' | 'signal'>) {
  return async (event: string, work: () => unknown): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (!signal.aborted && !isStillUnreachable(error)) logger.error({ error: serialiseError(error) }, event);
    }
  };
}

function createCleaner() {
  const cleaning = new Set<string>();
  return {
    /** Tells whether four or more files are being cleaned, so that a sweep begins no further one. */
    isBusy: () => cleaning.size >= MOST_CLEANED,
    /** Erases from a file the data that deletions have left to be erased, unless another call is already doing so. */
    async clean(path: string, context: MaintenanceContext): Promise<void> {
      if (cleaning.has(path)) return;
      cleaning.add(path);
      await cleanAfterErase(context).finally(() => cleaning.delete(path));
    },
  };
}

/**
 * Lists the open files, and then those with a run in progress that the pool has closed: a step may wait for a minute
 * without using its file, while others are opened. A tenant that was erased or moves just now is left out.
 */
function pathsInUse({ pool, runs, listPaths }: SweepsOptions): string[] {
  const open = pool.openPaths();
  const closed = runs.paths().filter((path) => !open.includes(path));
  return closed.length === 0 ? open : [...open, ...listPaths().filter((path) => closed.includes(path))];
}

/** Ends the leases of a run now, and makes its jobs due again. */
function takeBackRun(context: MaintenanceContext, owner: string): void {
  const { store } = context.open();
  store.write(() => renewLeases(store, owner, context.clock.now()));
  recoverJobs(context, { everyOwner: false });
}

/** Extends the leases of the runs in progress on a file by OM_LEASE_MS from now. */
function renewRuns({ config, clock, pool, runs }: SweepsOptions, path: string): void {
  const owners = runs.ownersOf(path);
  if (owners.length === 0) return;
  const { store } = pool.get(path);
  store.write(() => {
    for (const owner of owners) renewLeases(store, owner, clock.now() + config.OM_LEASE_MS);
  });
}
