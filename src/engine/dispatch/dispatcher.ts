import { setTimeout as pause } from 'node:timers/promises';
import { serialiseError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { QUEUED_STEPS, type QueuedStep, type StepPayload } from '../jobs.ts';
import { countRecovery, type Metrics } from '../metrics.ts';
import type { JobDispatcher, Logger } from '../ports.ts';
import type { Handout, LedgerSight, TooFew, WantedHandout } from '../store/dispatch.ts';
import type { Recovery } from '../store/jobs.ts';
import { messageAttributes, type Span, type Tracing } from '../tracing.ts';

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
  /** False once no worker has kept the schedules for a minute. */
  areMaintained(): Promise<boolean>;
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
  /** W3C trace contexts of its rows. They stay here: the ledger knows them, and a worker asks that. */
  readonly traces: readonly string[];
}

/** The tenants' ledgers as a dispatcher sees them: over the writer thread in the API, on connections of its own in a worker. */
export interface DispatchLedger {
  /** Looks at the tenants that may have work, in slices. */
  look(): Promise<LedgerLook>;
  /** Tenants with rows that have not ended. Looks at as many as it takes. */
  listUnfinished(): Promise<readonly string[]>;
  take(tenant: string, options: WantedHandout): Promise<Handout | TooFew | undefined>;
  giveBack(tenant: string, seqs: readonly number[]): Promise<void>;
  forget(tenant: string): Promise<number>;
  /** Takes back what is claimed by workers that fell silent. */
  recover(tenant: string): Promise<Recovery>;
  close(): void;
}

export interface LedgerLook {
  readonly sights: readonly (LedgerSight & { readonly tenant: string })[];
  readonly failures: readonly { readonly tenant: string; readonly error: unknown }[];
  /** False if there is more to see, soon. */
  readonly isComplete: boolean;
}

export interface DispatcherOptions {
  readonly ledger: DispatchLedger;
  readonly queues: StepQueues;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracing?: Tracing | null | undefined;
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
/** Of interactive adds, which pass bulk ones and have room of their own: few, so that nobody's wait long behind another's. */
export const INTERACTIVE_WINDOW_JOBS = 8;
/** While so many wait, no worker is idle, and rows that came just after a handout can gather for the next. */
const GATHER_FROM_JOBS = 2;
/** How long they do at most; a tenant that was not served for so long is served with what it has. */
const GATHER_MS = 100;
/** How often it looks for what was not hinted at: retries that fell due, marks and leases that lapsed, queues that forgot. */
const LOOK_EVERY_MS = 500;
/** The same while files that changed are left to look at. */
const LOOK_ON_MS = 100;
/** How long a hint waits for more, so that jobs carry many ids. */
const LINGER_MS = 5;
/** Between two rounds while a queue is full, or rows gather. */
const FULL_PAUSE_MS = 20;
/** After a failure, doubled up to the most. */
const FAILURE_PAUSE_MS = 100;
const FAILURE_PAUSE_MOST_MS = 5_000;
/** Jobs handed to a queue in one call, and bulk ones before interactive ones get a turn again. */
const ADD_MOST = 8;

/** Rows of one kind at one step. */
interface Lane {
  readonly step: QueuedStep;
  readonly bulk: boolean;
  /** Tenants that were hinted at or seen to have work, and not found without since. */
  readonly tenants: Set<string>;
  /** The next turn begins behind them, or a full queue would always go to the same. */
  servedLast: string | undefined;
  /** When each tenant was served; only who was served just now is kept. */
  readonly servedAt: Map<string, number>;
}

/** What a round leaves: nothing, rows that have to wait a little, or rows that could go at once. */
type Left = 'nothing' | 'waiting' | 'more';

/** Interactive adds first, and of each kind the later steps first: they finish what was begun. */
function createLanes(): Lane[] {
  return [false, true].flatMap((bulk) =>
    QUEUED_STEPS.toReversed().map((step) => ({
      ...{ step, bulk },
      ...{ tenants: new Set<string>(), servedLast: undefined, servedAt: new Map<string, number>() },
    })),
  );
}

/**
 * Carries ids from the ledgers to the queues, off every request's path: a hint only wakes it. Interactive adds go before bulk ones, tenants
 * take turns, a job each, and the queues hold a bounded window, so that bulk imports starve nobody and Redis stays small. While the
 * queues are down, rows wait where they are. Jobs of workers that fell silent are taken back here, too, whatever queues others take.
 */
export function createDispatcher(options: DispatcherOptions): JobDispatcher {
  const { ledger, queues, logger, metrics, tracing, leads, tenantOf } = options;
  const hinted = new Set<string>();
  const lanes = createLanes();
  const stop = new AbortController();
  let wake: () => void = () => {};
  let lookAt = 0;
  /** Whether the queues are this dispatcher's to fill until the next look. */
  let fills = false;
  /** Whether the queues did what they were asked last. */
  let isThrough = false;
  let areMaintained = true;
  /** Whose ledger could not be used when it was asked for last, so that each is said once. */
  const unusable = new Set<string>();

  const isUp = () => isThrough && queues.isUp();
  metrics.watchRedis(isUp);
  const running = run();
  return {
    dispatch(path) {
      const tenant = tenantOf(path);
      if (tenant === undefined) return;
      hinted.add(tenant);
      wake();
    },
    state: () => ({ mode: 'redis', isUp: isUp() }),
    async close() {
      stop.abort();
      wake();
      await running;
      ledger.close();
      await queues.close();
    },
  };

  async function run(): Promise<void> {
    let failures = 0;
    let said: string | undefined;
    while (!stop.signal.aborted) {
      try {
        if (performance.now() >= lookAt) await look();
        const left = fills ? await round() : standBy();
        isThrough = true;
        failures = 0;
        said = undefined;
        if (left === 'nothing') await untilHinted();
        else if (left === 'waiting') await sleep(FULL_PAUSE_MS);
      } catch (error) {
        isThrough = false;
        // Only a look asks the queues for something whatever there is to do.
        lookAt = 0;
        metrics.dispatchFailures.inc();
        const { code, message } = serialiseError(error);
        // One line an outage and reason, not one a try.
        if (message !== said) logger.warn({ code, reason: message }, 'dispatch_failed');
        said = message;
        await sleep(Math.min(FAILURE_PAUSE_MOST_MS, FAILURE_PAUSE_MS * 2 ** Math.min(failures++, 10)));
      }
    }
  }

  /** Until somebody hints, and a little longer for company, or until it is time to look. */
  async function untilHinted(): Promise<void> {
    if (hinted.size === 0 && !stop.signal.aborted) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        wake = resolve;
        timer = setTimeout(resolve, Math.max(0, lookAt - performance.now()));
      });
      clearTimeout(timer);
    }
    if (hinted.size > 0) await sleep(LINGER_MS);
  }

  async function sleep(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: stop.signal }).catch(() => {});
  }

  function standBy(): Left {
    hinted.clear();
    for (const { tenants } of lanes) tenants.clear();
    return 'nothing';
  }

  async function look(): Promise<void> {
    fills = leads || !(await queues.haveLeader());
    lookAt = performance.now() + LOOK_EVERY_MS;
    if (!fills) return;
    if (leads) await queues.lead();
    if (await queues.haveForgotten()) await handOutAgain();
    await warnIfNobodyMaintains();
    const { sights, failures, isComplete } = await ledger.look();
    for (const { tenant, error } of failures) setAside(tenant, error);
    for (const { tenant, steps, hasLapsed } of sights) {
      for (const lane of lanes) if (steps.includes(lane.step)) lane.tenants.add(tenant);
      if (hasLapsed) await attempt(tenant, () => recover(tenant));
    }
    lookAt = performance.now() + (isComplete ? LOOK_EVERY_MS : LOOK_ON_MS);
  }

  async function handOutAgain(): Promise<void> {
    let rows = 0;
    for (const tenant of await ledger.listUnfinished()) {
      rows += (await attempt(tenant, () => ledger.forget(tenant))) ?? 0;
      hinted.add(tenant);
    }
    metrics.queueRefills.inc();
    metrics.refilledRows.inc(rows);
    if (rows > 0) logger.warn({ rows }, 'queues_refilled');
  }

  async function recover(tenant: string): Promise<void> {
    const { requeued, dead } = await ledger.recover(tenant);
    if (requeued + dead === 0) return;
    countRecovery(metrics, { requeued, dead });
    logger.warn({ requeued, dead }, 'jobs_recovered');
    hinted.add(tenant);
  }

  async function warnIfNobodyMaintains(): Promise<void> {
    const were = areMaintained;
    areMaintained = await queues.areMaintained();
    if (were && !areMaintained) logger.warn({ queue: 'maintain' }, 'queue_without_worker');
  }

  async function round(): Promise<Left> {
    for (const tenant of hinted) for (const { tenants } of lanes) tenants.add(tenant);
    hinted.clear();
    const left: Left[] = [];
    for (const lane of lanes) left.push(await fill(lane));
    return left.includes('more') ? 'more' : left.includes('waiting') ? 'waiting' : 'nothing';
  }

  /** A job of each tenant in turn while there is room. A ledger is asked only for what can be handed out. */
  async function fill(lane: Lane): Promise<Left> {
    const { step, bulk, tenants, servedAt } = lane;
    if (tenants.size === 0) return 'nothing';
    const waiting = await queues.waiting(step);
    const room = Math.min(ADD_MOST, roomFor(lane, waiting));
    const now = performance.now();
    for (const [tenant, at] of servedAt) if (now - at > GATHER_MS) servedAt.delete(tenant);
    const jobs: QueuedJob[] = [];
    let gathers = false;
    for (const tenant of beginBehind(lane.servedLast, tenants)) {
      if (jobs.length >= room || stop.signal.aborted) break;
      const partial = !servedAt.has(tenant) || ahead(lane, waiting) < GATHER_FROM_JOBS;
      const handout = await attempt(tenant, () => ledger.take(tenant, { step, bulk, partial }));
      if (handout === undefined) {
        tenants.delete(tenant);
      } else if (handout === 'too_few') {
        gathers = true;
      } else {
        lane.servedLast = tenant;
        servedAt.set(tenant, now);
        const { name, alone, seqs, traces } = handout;
        jobs.push({ name, bulk, payload: { tenant, seqs: [...seqs], alone }, traces });
      }
    }
    await add(step, jobs);
    if (jobs.length > 0) return 'more';
    return gathers || tenants.size > 0 ? 'waiting' : 'nothing';
  }

  async function add(step: QueuedStep, jobs: readonly QueuedJob[]): Promise<void> {
    if (jobs.length === 0) return;
    const spans = tracing ? startSending(tracing, step, jobs) : [];
    try {
      await queues.add(step, jobs);
      metrics.dispatchedJobs.inc({ step }, jobs.length);
      for (const { payload } of jobs) metrics.dispatchedRows.inc({ step }, payload.seqs.length);
      await failpoint('after-dispatch');
    } catch (error) {
      for (const span of spans) span.fail(serialiseError(error).code);
      for (const { payload } of jobs) {
        await attempt(payload.tenant, () => ledger.giveBack(payload.tenant, payload.seqs));
        hinted.add(payload.tenant);
      }
      throw error;
    } finally {
      for (const span of spans) span.end();
    }
  }

  /** One tenant's ledger that cannot be used holds up no other's. @returns undefined if it cannot; the next look asks again */
  async function attempt<T>(tenant: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await work();
      unusable.delete(tenant);
      return result;
    } catch (error) {
      setAside(tenant, error);
      return undefined;
    }
  }

  function setAside(tenant: string, error: unknown): void {
    metrics.dispatchFailures.inc();
    if (!unusable.has(tenant)) logger.warn({ code: serialiseError(error).code }, 'ledger_unusable');
    unusable.add(tenant);
  }
}

/** A span a job, by OpenTelemetry's conventions for messages. */
function startSending(tracing: Tracing, step: QueuedStep, jobs: readonly QueuedJob[]): Span[] {
  return jobs.flatMap(({ payload, traces }) => {
    const attributes = messageAttributes('send', step, payload.seqs.length);
    return tracing.start(`send ${step}`, { kind: 'producer', attributes, continues: traces }) ?? [];
  });
}

/** Jobs of the queue that are picked up before a new one: interactive jobs pass those of bulk adds. */
function ahead({ bulk }: Lane, waiting: WaitingJobs): number {
  return bulk ? waiting.interactive + waiting.bulk : waiting.interactive;
}

function roomFor(lane: Lane, waiting: WaitingJobs): number {
  return (lane.bulk ? WINDOW_JOBS : INTERACTIVE_WINDOW_JOBS) - ahead(lane, waiting);
}

function beginBehind(last: string | undefined, tenants: Iterable<string>): string[] {
  const inOrder = [...tenants].toSorted();
  if (last === undefined) return inOrder;
  return [...inOrder.filter((tenant) => tenant > last), ...inOrder.filter((tenant) => tenant <= last)];
}
