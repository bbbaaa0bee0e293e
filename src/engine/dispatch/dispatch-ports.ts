import type { StepPayload } from '../job-payloads.ts';
import type { QueuedStep } from '../jobs.ts';
import type { DispatchBatch, DueSteps, LedgerStatus, TooFew, WantedBatch, WantedLane } from '../store/dispatch.ts';
import type { Recovery } from '../store/job-leases.ts';
import type { Readiness } from '../store/postgres/ledger-reader.ts';

/** Where the queues are: in Redis, or in PostgreSQL in a schema beside that of the tenants. */
export type QueuePlace =
  | {
      readonly kind: 'redis';
      /** URL of the Redis server. It may contain a password, so it is never logged. */
      readonly redisUrl: string;
      /** Prefix of all keys in Redis. It separates the queues of several data folders in one Redis. */
      readonly prefix: string;
    }
  /** `database` is the URL of the database, and may contain a password, too. */
  | { readonly kind: 'postgres'; readonly database: string };

/** The queues as a dispatcher uses them. Every call may fail or be slow; the implementation bounds its time. */
export interface StepQueues {
  /** Counts the jobs of a step's queue that no worker has picked up yet. */
  waiting(step: QueuedStep): Promise<WaitingJobs>;
  /** Adds jobs to a step's queue. A job is ignored if the queue still holds one of its name. */
  add(step: QueuedStep, jobs: readonly QueuedJob[]): Promise<void>;
  /**
   * Returns true once after the queues lost their data, and at the first call for new queues. The caller then hands out
   * all ledger rows (jobs) again.
   */
  haveForgotten(): Promise<boolean>;
  /**
   * Records that this dispatcher leads, which means that it fills the queues. Repeat the call at least every second.
   */
  lead(): Promise<void>;
  /** Whether some dispatcher has called `lead` within the last 2 seconds, and so fills the queues. */
  haveLeader(): Promise<boolean>;
  /**
   * Whether a worker has checked within the last minute that the server still has the job scheduler, which queues the
   * periodic upkeep. True also during the first minute of queues that were just made, since no worker can have checked
   * yet.
   */
  areMaintained(): Promise<boolean>;
  /** Whether the connection to the queues is up. */
  isUp(): boolean;
  close(): Promise<void>;
}

/**
 * Numbers of jobs in a queue that no worker has picked up yet: those for interactive adds, which are picked up first,
 * and those for bulk adds.
 */
export interface WaitingJobs {
  readonly interactive: number;
  readonly bulk: number;
}

/** A job of a queue, which names rows of one tenant's ledger. */
export interface QueuedJob {
  /** Name of the job (`DispatchBatch.name`), by which the queue recognises a job that is added twice. */
  readonly name: string;
  /** Whether the rows belong to bulk adds; workers pick up interactive jobs before them. */
  readonly bulk: boolean;
  /** The tenant and the rows of its ledger, as the queue carries them. */
  readonly payload: StepPayload;
  /**
   * W3C trace contexts of the job's rows. They do not go into the queue: a worker reads them from the ledger.
   */
  readonly traces: readonly string[];
}

/**
 * The tenants' ledgers as a dispatcher uses them: through the writer thread in the API, on connections of its own in a
 * worker. Tenants are given by their ids.
 */
export interface DispatchLedger {
  /** Reads the ledgers of the tenants that may have work, a bounded number of files in each call. */
  look(): Promise<LedgerLook>;
  /**
   * Lists the tenants with jobs that have not ended. It reads as many files as are needed for that; if the signal
   * aborts, it stops early and lists those that it has found.
   */
  listUnfinished(signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Reads the ledgers of many tenants in one statement; null where each ledger is a file, which `take` reads by itself.
   */
  readonly together: LedgersAtOnce | null;
  /**
   * Marks some due ledger rows (jobs) as handed out and returns them, for one job of a queue. Undefined if there are no
   * such rows; `too_few` if they do not fill a job and `partial` is false.
   */
  take(tenant: string, options: WantedBatch): Promise<DispatchBatch | TooFew | undefined>;
  /** Removes the marks of ledger rows that a queue did not accept, so that they can be handed out again at once. */
  giveBack(tenant: string, jobNos: readonly number[]): Promise<void>;
  /**
   * Removes the marks of all ledger rows of a tenant that were handed out to queues, so that they are handed out again.
   * @returns the number of rows that had a mark
   */
  forget(tenant: string): Promise<number>;
  /**
   * Makes jobs due again if the lease of the worker that claimed them has run out.
   * @returns how many jobs are queued again, and how many are dead now
   */
  recover(tenant: string): Promise<Recovery>;
  close(): void;
}

/**
 * Reads the ledgers of many tenants at once, by their ids. What it leaves out has no work, does not exist, or cannot be
 * read now; a look finds its work later.
 */
interface LedgersAtOnce {
  /** Returns the steps at which each tenant has due rows that are not with a queue. */
  dueSteps(tenants: readonly string[]): Promise<ReadonlyMap<string, DueSteps>>;
  /**
   * Returns whether each tenant has due rows for a lane that are not with a queue: none, few, or enough to fill a job
   * of the queue.
   */
  peek(tenants: readonly string[], lane: WantedLane): Promise<ReadonlyMap<string, Readiness>>;
}

interface LedgerLook {
  /**
   * What was seen in each ledger (table of jobs) that was read. Ledgers that had no work when they were last read and
   * have not changed since are left out.
   */
  readonly statuses: readonly (LedgerStatus & { readonly tenant: string })[];
  readonly failures: readonly { readonly tenant: string; readonly error: unknown }[];
  /** False if ledgers that changed are left for the next call, which should come soon. */
  readonly isComplete: boolean;
}
