import type { Logger } from '../ports.ts';
import type { ProviderHealth } from '../providers/provider-health.ts';
import type { StepContext } from '../steps/step-context.ts';
import type { RetrievalOptions } from '../types.ts';

/**
 * Context in which a batch of one tenant's jobs runs: the context of the steps, and the name under which jobs are
 * claimed.
 */
export interface BatchContext extends StepContext {
  /** Name of the worker in its claims in the ledger, by which their leases are renewed. */
  readonly owner: string;
  readonly logger: Logger;
  /** Returns the tenant's defaults for queries; if it is left out, there are none. */
  readonly defaults?: (() => RetrievalOptions) | undefined;
  /**
   * Health of the provider that the jobs' step calls, as earlier batches of the worker have observed it. If it is left
   * out, each batch is judged by itself.
   */
  readonly provider?: ProviderHealth;
}

/** A running batch, whose calls to the provider are watched. */
export type Batch = BatchContext & {
  readonly provider: ProviderHealth;
  /** Models that were called in this batch; left out if one model embeds everything. */
  readonly models?: ModelsAsked | undefined;
};

/**
 * Names of the models that answered and of the models that failed in a batch, as `model@dimensions`. A model may be in
 * both sets.
 */
interface ModelsAsked {
  readonly answered: Set<string>;
  readonly failed: Set<string>;
}

/** Result of claiming jobs and running them. */
export interface BatchResult {
  /** Number of jobs claimed. */
  readonly claimed: number;
  /**
   * Time for which no job that needs the provider should be claimed (ms), since the provider is down or limits its
   * rate, or the disk is full; null if no pause is needed.
   */
  readonly providerPauseMs: number | null;
}
