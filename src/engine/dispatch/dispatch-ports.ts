import type { StepPayload } from '../job-payloads.ts';
import type { QueuedStep } from '../jobs.ts';
import type { Handout, LedgerSight, TooFew, WantedHandout } from '../store/dispatch.ts';
import type { Recovery } from '../store/job-leases.ts';

/**
 * The queues as a dispatcher sees them. Every call may fail or be slow, and is bounded in time by whoever implements
 * it.
 */
export interface StepQueues {
  /** Counts the jobs of a step's queue that nobody has picked up yet. */
  waiting(step: QueuedStep): Promise<WaitingJobs>;
  /** Adds jobs to a step's queue. A job with a name that the queue still knows is ignored. */
  add(step: QueuedStep, jobs: readonly QueuedJob[]): Promise<void>;
  /** True once after the queues lost what they knew: whoever hears it hands everything out again. */
  haveForgotten(): Promise<boolean>;
  /** Says that this dispatcher fills the queues, to be repeated every second. */
  lead(): Promise<void>;
  /** True while a dispatcher says that it fills the queues. */
  haveLeader(): Promise<boolean>;
  /** False once no worker has kept the schedules for a minute. */
  areMaintained(): Promise<boolean>;
  /** True while the connection to the queues is up. */
  isUp(): boolean;
  close(): Promise<void>;
}

/** Numbers of a queue's jobs that nobody has picked up yet. */
export interface WaitingJobs {
  readonly interactive: number;
  readonly bulk: number;
}

/** A job of a queue, which names rows of one tenant's ledger. */
export interface QueuedJob {
  /** Name of the handout, by which a queue recognises a job that it was given twice: see `Handout.name`. */
  readonly name: string;
  /** True for rows of bulk adds, which interactive jobs pass. */
  readonly bulk: boolean;
  /** The rows of the ledger and their tenant, as the queue carries them. */
  readonly payload: StepPayload;
  /**
   * W3C trace contexts of the job's rows. They do not go into the queue: a worker reads them from the ledger.
   */
  readonly traces: readonly string[];
}

/**
 * The tenants' ledgers as a dispatcher sees them: over the writer thread in the API, on connections of its own in a
 * worker. Tenants are named by their ids.
 */
export interface DispatchLedger {
  /** Looks at the tenants that may have work, a bounded number of files in each call. */
  look(): Promise<LedgerLook>;
  /** Lists the tenants with rows that have not ended, however many files that takes to look at. */
  listUnfinished(): Promise<readonly string[]>;
  /**
   * Marks due rows and returns them: undefined if there are none, `too_few` if they make no full handout and `partial`
   * is false.
   */
  take(tenant: string, options: WantedHandout): Promise<Handout | TooFew | undefined>;
  /** Removes the marks of rows that a queue did not take, so that they can be handed out again at once. */
  giveBack(tenant: string, jobNos: readonly number[]): Promise<void>;
  /** Removes all marks of a tenant's rows. @returns how many rows had one */
  forget(tenant: string): Promise<number>;
  /** Takes back the jobs of workers that fell silent. @returns how many are queued again, and how many are dead now */
  recover(tenant: string): Promise<Recovery>;
  close(): void;
}

interface LedgerLook {
  /** The ledgers that were looked at; those without any work since the last look are left out. */
  readonly sights: readonly (LedgerSight & { readonly tenant: string })[];
  readonly failures: readonly { readonly tenant: string; readonly error: unknown }[];
  /** False if files that changed are left for the next look, which should come soon. */
  readonly isComplete: boolean;
}
