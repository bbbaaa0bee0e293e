import { setTimeout as pause } from 'node:timers/promises';
import { serialiseError } from '../errors.ts';
import type { JobDispatcher } from '../ports.ts';
import { MOST_READ } from './database-poller.ts';
import type { DispatcherOptions, DispatchParts } from './dispatch-parts.ts';
import { fillLane } from './fill-lane.ts';
import { addToLanes, createLanes, type Left } from './lanes.ts';
import { createLedgerGuard } from './ledger-guard.ts';
import { createLedgerWatch } from './watch-ledgers.ts';

/** Time for which a hint waits for further hints (ms), so that one job of a queue carries many rows. */
const LINGER_MS = 5;
/** Time between two rounds of filling the queues while one is full, or while rows are collected for a full job (ms). */
const FULL_PAUSE_MS = 20;
/** Pause after a failure (ms). Each further failure in a row doubles it, up to 5 seconds. */
const FAILURE_PAUSE_MS = 100;
const MAX_FAILURE_PAUSE_MS = 5_000;

/**
 * Creates a dispatcher, which carries numbers of rows from the tenants' ledgers to the queues. It runs outside of every
 * request: a hint from a request only wakes it. Interactive adds go before bulk ones, tenants are served in turn with
 * one job each, and the queues hold a bounded number of jobs, so that bulk imports starve nobody and their server stays
 * small. While the queues are down, rows wait in the ledgers. It also makes jobs due again whose worker let its lease
 * run out, at any step. The caller closes it, which closes the ledgers and queues of `options`, too.
 */
export function createDispatcher(options: DispatcherOptions): JobDispatcher {
  const { ledger, queues, server, metrics, tenantOf } = options;
  const stop = new AbortController();
  const { signal } = stop;
  const hints = createHints();
  const guard = createLedgerGuard(options);
  const parts: DispatchParts = { ...options, guard, lanes: createLanes(), hint: hints.add, signal };
  /**
   * Whether the last round ended without an error. The round after a failure calls the queues, so that true shows that
   * they answered after it.
   */
  let isThrough = false;
  const isUp = () => isThrough && queues.isUp();
  metrics.watchDispatch(server, isUp);
  const running = keepFilling(parts, hints, (now) => (isThrough = now));
  return {
    dispatch(path) {
      const tenant = tenantOf(path);
      if (tenant !== undefined) hints.add(tenant);
    },
    state: () => ({ mode: server, isUp: isUp() }),
    async close() {
      stop.abort();
      hints.wake();
      await running;
      ledger.close();
      await queues.close();
    },
  };
}

async function keepFilling(parts: DispatchParts, hints: Hints, noteThrough: (now: boolean) => void): Promise<void> {
  const { signal, metrics, logger } = parts;
  const watch = createLedgerWatch(parts);
  let failures = 0;
  let lastReason: string | undefined;
  while (!signal.aborted) {
    try {
      const left = (await watch.lookIfDue()) ? await fillAll(parts, hints) : standBy(parts, hints);
      noteThrough(true);
      failures = 0;
      lastReason = undefined;
      if (left === 'waiting') await sleep(FULL_PAUSE_MS, signal);
      if (left !== 'nothing') continue;
      if (!signal.aborted) await hints.wait(watch.dueInMs());
      if (hints.areAny()) await sleep(LINGER_MS, signal);
    } catch (error) {
      noteThrough(false);
      // While there is nothing to hand out, only a look calls the queues and so notices the end of an outage.
      watch.lookSoon();
      metrics.dispatchFailures.inc();
      const { code, message } = serialiseError(error);
      // One line for each outage and reason, not one for each try.
      if (message !== lastReason) logger.warn({ code, reason: message }, 'dispatch_failed');
      lastReason = message;
      await sleep(Math.min(MAX_FAILURE_PAUSE_MS, FAILURE_PAUSE_MS * 2 ** Math.min(failures++, 10)), signal);
    }
  }
}

async function fillAll(parts: DispatchParts, hints: Hints): Promise<Left> {
  const { lanes } = parts;
  await addHinted(parts, hints);
  const left: Left[] = [];
  for (const lane of lanes) left.push(await fillLane(lane, parts));
  return left.includes('more') ? 'more' : left.includes('waiting') ? 'waiting' : 'nothing';
}

/**
 * Adds the tenants of hints to the lanes in which they have rows, 256 in a round, so that one statement reads their
 * ledgers within its time; the other hints stay. After a failure the next round takes half as many, since one of these
 * ledgers may take too long: so the others are read without it. Where each ledger is a file, it adds all to all lanes,
 * since a round that finds no rows in one costs little.
 */
async function addHinted({ lanes, ledger: { together } }: DispatchParts, hints: Hints): Promise<void> {
  const hinted = hints.take(together === null ? Infinity : hints.most);
  if (hinted.length === 0) return;
  if (together === null) {
    for (const tenant of hinted) for (const { tenants } of lanes) tenants.add(tenant);
    return;
  }
  try {
    for (const [tenant, due] of await together.dueSteps(hinted)) addToLanes(lanes, tenant, due);
    hints.most = Math.min(MOST_READ, 2 * hints.most);
  } catch (error) {
    hints.most = Math.max(1, Math.floor(hinted.length / 2));
    // Behind those that wait, which may be of ledgers that can be read.
    for (const tenant of hinted) hints.add(tenant);
    throw error;
  }
}

/** Drops the hints of new jobs, since another dispatcher fills the queues and hands out these jobs. */
function standBy({ lanes }: DispatchParts, hints: Hints): Left {
  hints.take(Infinity);
  for (const { tenants } of lanes) tenants.clear();
  return 'nothing';
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => {});
}

type Hints = ReturnType<typeof createHints>;

/** Creates the set of tenants that hints name. A new hint wakes the dispatcher. */
function createHints() {
  const hinted = new Set<string>();
  let wake: () => void = () => {};
  return {
    add(tenant: string): void {
      hinted.add(tenant);
      wake();
    },
    areAny: () => hinted.size > 0,
    /** Greatest number of hints of the next round, if the ledgers of a round are read by one statement. */
    most: MOST_READ,
    /** Takes the oldest hints, `most` at most. */
    take(most: number): string[] {
      const taken: string[] = [];
      for (const tenant of hinted) {
        if (taken.length === most) break;
        taken.push(tenant);
        hinted.delete(tenant);
      }
      return taken;
    },
    /**
     * Waits until a hint is added or `wake` is called, for `ms` at most; returns at once if there is a hint already.
     */
    async wait(ms: number): Promise<void> {
      if (hinted.size > 0) return;
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        wake = resolve;
        timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
    },
    wake: () => wake(),
  };
}
