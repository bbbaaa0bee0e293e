import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Engine, isStillUnreachable, serialiseError } from '../engine/index.ts';
import { passes } from './run-evals.ts';

/** Interval between two checks of the tenants that are known to have standing queries or webhooks (ms). */
const LOOK_MS = 200;
/** Pause before the next check of a tenant that has work left (ms), in which the process can receive messages. */
const BUSY_MS = 1;
/**
 * Interval between two searches of all tenants (ms). They find tenants for which another process has stored the first
 * standing query or webhook.
 */
const SCAN_MS = 60_000;
/** Greatest number of tenants that are tended at the same time: one that waits for its turn holds up no other. */
const MAX_UNDER_WAY = 16;

/**
 * Answers standing queries and delivers webhooks when they are due, until the signal aborts. Without `OM_EVENTS` it
 * does nothing. Several processes may call it, since claims in the tenant's file keep them apart. It never rejects;
 * failures are logged.
 */
export async function tendStandingUntil(signal: AbortSignal, engine: Engine): Promise<void> {
  if (!engine.config.OM_EVENTS) return;
  const scan = createScan(engine, signal);
  const tending = createTending(engine, signal);
  while (await passes(BUSY_MS, signal)) {
    scan();
    await tending.startDue();
    await tending.untilBusy(LOOK_MS);
  }
}

/**
 * Makes the function that begins a search of all tenants for those with standing queries or webhooks, which become
 * `tended`. It does nothing if the last search began within a minute or still runs.
 */
function createScan({ looks, tended, logger }: Engine, signal: AbortSignal): () => void {
  let isRunning = false;
  let scannedAt = -Infinity;
  const run = async () => {
    try {
      for await (const id of looks.find('standing')) {
        if (signal.aborted) return;
        tended.add(id);
      }
    } catch (error) {
      // The control database cannot be read just now: the next search comes.
      if (!signal.aborted) logger.error({ error: serialiseError(error) }, 'standing_failed');
    } finally {
      isRunning = false;
    }
  };
  return () => {
    if (isRunning || performance.now() - scannedAt <= SCAN_MS) return;
    isRunning = true;
    scannedAt = performance.now();
    void run();
  };
}

/** What is remembered of a tenant that had nothing to do when it was last looked at. */
interface Rest {
  /**
   * The tenant's stamp (see `TenantLooks`) before that look; undefined if the tenant has to be looked at again in any
   * case.
   */
  readonly stamp: string | undefined;
  /** Time from which on it has something to do if it is not written to (Unix ms). */
  readonly dueAt: number;
  /** Start of the look, as `performance.now()`. */
  readonly at: number;
}

/**
 * Makes the functions by which `tendStandingUntil` looks after the tenants in `tended` (those with standing queries or
 * webhooks). Each tenant has at most one look in progress.
 */
function createTending(engine: Engine, signal: AbortSignal) {
  const { tended, looks, clock } = engine;
  const underWay = new Map<string, Promise<void>>();
  const rests = new Map<string, Rest>();
  /** Time (`performance.now()`) of the last check of all tended tenants; others check only those with work left. */
  let checkedAt = -Infinity;
  let wake = () => {};
  let isBusy = false;

  return {
    /** Begins a look at every tenant that may have something to do, each in a turn of the event loop of its own. */
    async startDue(): Promise<void> {
      isBusy = false;
      const isForAll = performance.now() - checkedAt >= LOOK_MS;
      if (isForAll) checkedAt = performance.now();
      const asked = [...tended].filter((id) => !underWay.has(id) && (isForAll || !rests.has(id)));
      for (const id of rests.keys()) if (!tended.has(id) && !underWay.has(id)) rests.delete(id);
      if (asked.length === 0) return;
      const stamps = await readStamps(asked);
      for (const id of asked) {
        const rest = rests.get(id);
        const stamp = stamps.get(id);
        if (rest !== undefined && stamp !== undefined && isResting(rest, stamp, clock.now())) continue;
        while (underWay.size >= MAX_UNDER_WAY) await Promise.race(underWay.values());
        await nextTurn();
        if (signal.aborted) return;
        const looked = look(id, stamp).finally(() => underWay.delete(id));
        underWay.set(id, looked);
      }
    },
    /** Resolves when a look has left work for the next one, after `ms`, or when the signal aborts. */
    async untilBusy(ms: number): Promise<void> {
      if (isBusy) return;
      const woken = new AbortController();
      wake = () => woken.abort();
      signal.addEventListener('abort', wake);
      await passes(ms, woken.signal);
      signal.removeEventListener('abort', wake);
    },
  };

  async function readStamps(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    try {
      return await looks.stampsOf(ids);
    } catch {
      return new Map(); // The control database cannot be read just now, which each look then reports.
    }
  }

  /** Answers a tenant's standing queries and delivers its webhooks once; notes if work is left. It never rejects. */
  async function look(id: string, stamp: string | undefined): Promise<void> {
    // Taken out before the look: a standing query that is stored during it puts the tenant in again.
    tended.delete(id);
    rests.delete(id);
    const at = performance.now();
    try {
      const tenant = await engine.tenant(id);
      const state = await tenant.tendStanding(signal);
      if (state === 'absent') return;
      tended.add(id);
      if (state === 'idle') return void rests.set(id, { stamp, dueAt: await tenant.standingDueAt(), at });
      isBusy = true;
      wake();
    } catch (error) {
      // It is looked at again at the next search.
      if (!signal.aborted && !isStillUnreachable(error))
        engine.logger.error({ error: serialiseError(error) }, 'standing_failed');
    }
  }
}

/**
 * Tells whether a tenant with this stamp has nothing to do at `now` (Unix ms), as its last look found out. It is false
 * at the latest a minute after that look, since settings may have changed.
 */
const isResting = (rest: Rest, stamp: string, now: number): boolean =>
  rest.stamp === stamp && now < rest.dueAt && performance.now() - rest.at < SCAN_MS;
