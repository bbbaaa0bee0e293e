import type { QueuedStep, StepPayload } from '../jobs.ts';
import type { Handout, LedgerSight, TooFew, WantedHandout } from '../store/dispatch.ts';
import type { Recovery } from '../store/jobs.ts';

/**
 * The queues as a dispatcher sees them. Every call may fail or be slow, and is bounded in time by whoever implements
 * it.
 */
export interface StepQueues {
  /** Counts the jobs that nobody has picked up yet. */
  waiting(step: QueuedStep): Promise<WaitingJobs>;
  add(step: QueuedStep, jobs: readonly QueuedJob[]): Promise<void>;
  /** True once after the queues lost what they knew: whoever hears it hands everything out again. */
  haveForgotten(): Promise<boolean>;
  /** Says that this dispatcher fills the queues, to be repeated every second. */
  lead(): Promise<void>;
  /** True while a dispatcher says that it fills the queues. */
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
  /**
   * W3C trace contexts of the job's rows. They do not go into the queue: the ledger knows them, and a worker asks that.
   */
  readonly traces: readonly string[];
}

/**
 * The tenants' ledgers as a dispatcher sees them: over the writer thread in the API, on connections of its own in a
 * worker.
 */
export interface DispatchLedger {
  /** Looks at the tenants that may have work, in slices. */
  look(): Promise<LedgerLook>;
  /** Lists the tenants with rows that have not ended, however many files that takes to look at. */
  listUnfinished(): Promise<readonly string[]>;
  take(tenant: string, options: WantedHandout): Promise<Handout | TooFew | undefined>;
  giveBack(tenant: string, seqs: readonly number[]): Promise<void>;
  /** Removes all marks of a tenant's rows. @returns how many rows had one */
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
