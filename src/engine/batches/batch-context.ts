import type { Logger } from '../ports.ts';
import type { ProviderHealth } from '../providers/retry.ts';
import type { StepContext } from '../steps/step-context.ts';
import type { RetrievalOptions } from '../types.ts';

/** Context of the batches of one tenant's jobs: that of the steps, and who claims the jobs. */
export interface BatchContext extends StepContext {
  /** Name that the claims bear in the ledger, by which their leases are renewed. */
  readonly owner: string;
  readonly logger: Logger;
  /** Reads the tenant's defaults for queries; left out where it has none. */
  readonly defaults?: (() => RetrievalOptions) | undefined;
  /**
   * State of the provider that the jobs' step asks, as the worker's batches have seen it. Left out, each batch is
   * judged by itself.
   */
  readonly provider?: ProviderHealth;
}

/** A batch under way, whose calls to the provider are watched. */
export type Batch = BatchContext & {
  readonly provider: ProviderHealth;
  /** Models that were asked in this batch; left out where one model embeds everything. */
  readonly models?: ModelsAsked | undefined;
};

/** Names of the models that answered and that failed in a batch, as `model@dimensions`. A model may be in both sets. */
interface ModelsAsked {
  readonly answered: Set<string>;
  readonly failed: Set<string>;
}

/** Result of claiming jobs and running them. */
export interface BatchResult {
  /** Number of jobs claimed. */
  readonly claimed: number;
  /**
   * Time in which nothing that needs the provider should be claimed (ms), since the provider is down or asks for
   * patience, or the disk is full; null for no pause.
   */
  readonly providerPauseMs: number | null;
}
