import { setTimeout as pause } from 'node:timers/promises';
import { serialiseError } from '../errors.ts';
import type { JobDispatcher } from '../ports.ts';
import type { DispatcherOptions, DispatchParts } from './dispatch-parts.ts';
import { fillLane } from './fill-lane.ts';
import { createLanes, type Left } from './lanes.ts';
import { createLedgerGuard } from './ledger-guard.ts';
import { createLedgerWatch } from './watch-ledgers.ts';

/** Time that a hint waits for more hints (ms), so that jobs carry many ids. */
const LINGER_MS = 5;
/** Time between two rounds while a queue is full, or rows gather (ms). */
const FULL_PAUSE_MS = 20;
/** Pause after a failure (ms). Each further failure in a row doubles it, up to `MAX_FAILURE_PAUSE_MS`. */
const FAILURE_PAUSE_MS = 100;
const MAX_FAILURE_PAUSE_MS = 5_000;

/**
 * Carries ids from the ledgers to the queues, off every request's path: a hint only wakes it. Interactive adds go
 * before bulk ones, tenants take turns, a job each, and the queues hold a bounded window, so that bulk imports starve
 * nobody and Redis stays small. While the queues are down, rows wait where they are. Jobs of workers that fell silent
 * are taken back here, too, whatever queues others take.
 */
export function createDispatcher(options: DispatcherOptions): JobDispatcher {
  const { ledger, queues, metrics, tenantOf } = options;
  const stop = new AbortController();
  const { signal } = stop;
  const hints = createHints();
  const guard = createLedgerGuard(options);
  const parts: DispatchParts = { ...options, guard, lanes: createLanes(), hint: hints.add, signal };
  /** True if the queues did what they were asked last. */
  let isThrough = false;
  const isUp = () => isThrough && queues.isUp();
  metrics.watchRedis(isUp);
  const running = keepFilling(parts, hints, (now) => (isThrough = now));
  return {
    dispatch(path) {
      const tenant = tenantOf(path);
      if (tenant !== undefined) hints.add(tenant);
    },
    state: () => ({ mode: 'redis', isUp: isUp() }),
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
      // Only a look asks the queues for something even if there is nothing to do.
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
  for (const tenant of hints.takeAll()) for (const { tenants } of lanes) tenants.add(tenant);
  const left: Left[] = [];
  for (const lane of lanes) left.push(await fillLane(lane, parts));
  return left.includes('more') ? 'more' : left.includes('waiting') ? 'waiting' : 'nothing';
}

/** Forgets the hints, as another dispatcher, the leader, hands out what they name. */
function standBy({ lanes }: DispatchParts, hints: Hints): Left {
  hints.takeAll();
  for (const { tenants } of lanes) tenants.clear();
  return 'nothing';
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => {});
}

type Hints = ReturnType<typeof createHints>;

/** Creates the set of tenants that hints name, which wakes the dispatcher. */
function createHints() {
  const hinted = new Set<string>();
  let wake: () => void = () => {};
  return {
    add(tenant: string): void {
      hinted.add(tenant);
      wake();
    },
    areAny: () => hinted.size > 0,
    takeAll(): string[] {
      const taken = [...hinted];
      hinted.clear();
      return taken;
    },
    /** Waits for a hint, until `wake` is called, or `ms` at most. */
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
