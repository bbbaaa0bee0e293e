import { setTimeout as pause } from 'node:timers/promises';
import { serialiseError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { QUEUED_STEPS, type QueuedStep, type StepPayload } from '../jobs.ts';
import type { Metrics } from '../metrics.ts';
import type { JobDispatcher, Logger } from '../ports.ts';
import type { Handout, PartialHandouts } from '../store/dispatch.ts';

/** The queues as a dispatcher sees them. Every call may fail or be slow, and is bounded in time by whoever implements it. */
export interface StepQueues {
  /** Jobs that nobody has picked up yet. */
  waiting(step: QueuedStep): Promise<WaitingJobs>;
  add(step: QueuedStep, jobs: readonly QueuedJob[]): Promise<void>;
  /** True once after the queues lost what they knew: whoever hears it hands everything out again. */
  haveForgotten(): Promise<boolean>;
  /** Says that this dispatcher fills them, to be repeated every second. */
  lead(): Promise<void>;
  /** True while a dispatcher says that it fills them. */
  haveLeader(): Promise<boolean>;
  isUp(): boolean;
  close(): Promise<void>;
}

export interface WaitingJobs {
  readonly interactive: number;
  readonly bulk: number;
}

export interface QueuedJob {
  readonly name: string;
  readonly bulk: boolean;
  readonly payload: StepPayload;
}

/** A tenant's ledger as a dispatcher sees it: over the writer thread in the API, on a connection of its own in a worker. */
export interface DispatchLedger {
  listTenants(): readonly string[];
  /** A cheap look. */
  hasWork(tenant: string, step: QueuedStep): boolean;
  take(tenant: string, step: QueuedStep, partial: PartialHandouts): Promise<Handout | undefined>;
  giveBack(tenant: string, seqs: readonly number[]): Promise<void>;
  forget(tenant: string): Promise<number>;
}

export interface DispatcherOptions {
  readonly ledger: DispatchLedger;
  readonly queues: StepQueues;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /**
   * True beside the writer of an API, which marks rows in commits that it makes anyway. Others stand by while there is a leader: each
   * that fills the queues is one more that wants the write lock.
   */
  readonly leads: boolean;
  /** Name of a tenant by its file, as hints name files. */
  readonly tenantOf: (path: string) => string | undefined;
}

/** Jobs that a queue holds at most before they are picked up: with 64 ids each, some seconds of work for a few workers. */
export const WINDOW_JOBS = 32;
/** While so many wait, no worker is idle, and rows that came just after a handout can gather for the next. */
const GATHER_FROM_JOBS = 2;
/** How long they do at most; a tenant that was not served for so long is served with what it has. */
const GATHER_MS = 100;
/** How often it looks for what was not hinted at: retries that fell due, marks that lapsed, queues that forgot. */
const LOOK_EVERY_MS = 500;
/** How long a hint waits for more, so that jobs carry many ids. */
const LINGER_MS = 5;
/** Between two rounds while a queue is full, or rows gather. */
const FULL_PAUSE_MS = 20;
/** After a failure, doubled up to the most. */
const FAILURE_PAUSE_MS = 100;
const FAILURE_PAUSE_MOST_MS = 5_000;
/** Jobs handed to a queue in one call. */
const ADD_MOST = 32;

/**
 * Carries ids from the ledgers to the queues, off every request's path: a hint only wakes it. Tenants take turns, a job each, and the
 * queues hold a bounded window, so that a bulk import starves nobody and Redis stays small. While the queues are down, rows wait
 * where they are.
 */
export function createDispatcher(options: DispatcherOptions): JobDispatcher {
  const { ledger, queues, logger, metrics, leads, tenantOf } = options;
  const hinted = new Set<string>();
  const stop = new AbortController();
  let wake: () => void = () => {};
  /** Of each queue, whom it was filled for last: the next turn begins behind them, or a full queue would always go to the same. */
  const servedLast = new Map<QueuedStep, string>();
  /** When each tenant was served last, by step; only who was served just now is kept. */
  const servedAt: Readonly<Record<QueuedStep, Map<string, number>>> = { encode: new Map(), link: new Map() };

  const running = run();
  return {
    dispatch(path) {
      const tenant = tenantOf(path);
      if (tenant === undefined) return;
      hinted.add(tenant);
      wake();
    },
    state: () => ({ mode: 'redis', isUp: queues.isUp() }),
    async close() {
      stop.abort();
      wake();
      await running;
      await queues.close();
    },
  };

  async function run(): Promise<void> {
    let lookAt = 0;
    let fills = false;
    for (let failures = 0; !stop.signal.aborted;) {
      try {
        if (performance.now() >= lookAt) {
          fills = await look();
          lookAt = performance.now() + LOOK_EVERY_MS;
        }
        if (!fills) hinted.clear();
        const isLeft = await round();
        failures = 0;
        await (isLeft ? sleep(FULL_PAUSE_MS) : untilHinted());
      } catch (error) {
        metrics.dispatchFailures.inc();
        // One line an outage, not one a try.
        if (failures++ === 0) logger.warn({ code: serialiseError(error).code }, 'dispatch_failed');
        await sleep(Math.min(FAILURE_PAUSE_MOST_MS, FAILURE_PAUSE_MS * 2 ** Math.min(failures, 10)));
      }
    }
  }

  /** Until somebody hints, and a little longer for company, or until it is time to look. */
  async function untilHinted(): Promise<void> {
    if (hinted.size === 0 && !stop.signal.aborted) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        wake = resolve;
        timer = setTimeout(resolve, LOOK_EVERY_MS);
      });
      clearTimeout(timer);
    }
    if (hinted.size > 0) await sleep(LINGER_MS);
  }

  async function sleep(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: stop.signal }).catch(() => {});
  }

  /** @returns whether the queues are this dispatcher's to fill until the next look */
  async function look(): Promise<boolean> {
    const tenants = ledger.listTenants();
    if (await queues.haveForgotten()) {
      let rows = 0;
      for (const tenant of tenants) rows += await ledger.forget(tenant);
      metrics.queueRefills.inc();
      if (rows > 0) logger.warn({ rows }, 'queues_refilled');
    }
    if (leads) await queues.lead();
    else if (await queues.haveLeader()) return false;
    for (const tenant of tenants) {
      if (QUEUED_STEPS.some((step) => ledger.hasWork(tenant, step))) hinted.add(tenant);
    }
    return true;
  }

  /** Links first: they need no provider and finish what was begun. @returns true if something is left for the next round */
  async function round(): Promise<boolean> {
    const tenants = [...hinted];
    hinted.clear();
    let isLeft = false;
    for (const step of QUEUED_STEPS.toReversed()) isLeft = (await fill(step, tenants)) || isLeft;
    if (isLeft) for (const tenant of tenants) hinted.add(tenant);
    return isLeft;
  }

  /** One job a tenant in turn until the queue is full or nobody has more. @returns true if something is left for the next round */
  async function fill(step: QueuedStep, tenants: readonly string[]): Promise<boolean> {
    let inTurn = tenants.filter((tenant) => ledger.hasWork(tenant, step));
    let gathers = false;
    while (inTurn.length > 0 && !stop.signal.aborted) {
      const waiting = await queues.waiting(step);
      metrics.queueWaiting.set({ step }, waiting.interactive + waiting.bulk);
      const room = Math.min(ADD_MOST, WINDOW_JOBS - waiting.interactive - waiting.bulk);
      if (room <= 0) return true;
      const now = performance.now();
      for (const [tenant, at] of servedAt[step]) if (now - at > GATHER_MS) servedAt[step].delete(tenant);
      const jobs: QueuedJob[] = [];
      const ready: string[] = [];
      for (const tenant of beginBehind(servedLast.get(step), inTurn)) {
        if (jobs.length === room) {
          ready.push(tenant);
          continue;
        }
        const partial = servedAt[step].has(tenant) ? partialHandouts(waiting) : 'any';
        const handout = await ledger.take(tenant, step, partial);
        if (handout === undefined) {
          gathers ||= partial !== 'any' && ledger.hasWork(tenant, step);
          continue;
        }
        ready.push(tenant);
        servedLast.set(step, tenant);
        servedAt[step].set(tenant, now);
        const { name, bulk, alone, seqs } = handout;
        jobs.push({ name, bulk, payload: { tenant, seqs: [...seqs], alone } });
      }
      await add(step, jobs);
      inTurn = ready;
    }
    return gathers;
  }

  async function add(step: QueuedStep, jobs: readonly QueuedJob[]): Promise<void> {
    if (jobs.length === 0) return;
    try {
      await queues.add(step, jobs);
      metrics.dispatchedJobs.inc({ step }, jobs.length);
      for (const { payload } of jobs) metrics.dispatchedRows.inc({ step }, payload.seqs.length);
      await failpoint('after-dispatch');
    } catch (error) {
      for (const { payload } of jobs) await ledger.giveBack(payload.tenant, payload.seqs);
      throw error;
    }
  }
}

/** Interactive jobs pass those of bulk adds, so for them only their own kind counts. */
function partialHandouts({ interactive, bulk }: WaitingJobs): PartialHandouts {
  if (interactive >= GATHER_FROM_JOBS) return 'none';
  return interactive + bulk >= GATHER_FROM_JOBS ? 'interactive' : 'any';
}

function beginBehind(last: string | undefined, tenants: readonly string[]): string[] {
  const inOrder = tenants.toSorted();
  if (last === undefined) return inOrder;
  return [...inOrder.filter((tenant) => tenant > last), ...inOrder.filter((tenant) => tenant <= last)];
}
