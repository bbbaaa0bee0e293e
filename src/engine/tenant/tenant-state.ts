import { createJobWaits, type JobWaits } from './wait-for-jobs.ts';

/** What runs regularly for a tenant's standing queries and webhooks. */
export interface StandingWork {
  /** Starts the deliveries that are due, and resolves to whether there is more to do; see `createDeliveries`. */
  readonly deliver: (signal: AbortSignal) => Promise<boolean>;
  /**
   * Compares some new memories with the standing queries, and resolves to whether there was something to compare; see
   * `createComparison`.
   */
  readonly compareDue: () => Promise<boolean>;
}

/**
 * Greatest size in bytes of each file that is arriving, by its name in the uploads folder. The next file is accepted
 * only if there is space for all of them.
 */
export type ArrivingBytes = Map<string, number>;

/**
 * What all objects of a tenant share: those for its API keys (`Tenant.as`), and those that are made anew after they
 * were dropped. It is kept while the process runs, so each part is made at its first use: few tenants use all parts.
 */
export class TenantState {
  #arriving: ArrivingBytes | undefined;
  #waits: JobWaits | undefined;
  #standingWork: StandingWork | undefined;

  /** Sizes of the files that are arriving for the tenant. */
  get arriving(): ArrivingBytes {
    return (this.#arriving ??= new Map());
  }

  /** The waits of all callers that wait until jobs of the tenant have ended. */
  get waits(): JobWaits {
    return (this.#waits ??= createJobWaits());
  }

  /** Returns the work for standing queries and webhooks, which `make` makes at the first call. */
  standingWork(make: () => StandingWork): StandingWork {
    return (this.#standingWork ??= make());
  }
}
