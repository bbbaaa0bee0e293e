import type { Logger } from '../ports.ts';
import type { ProviderHealth } from '../providers/retry.ts';
import type { StepContext } from '../steps/step-context.ts';

export interface BatchContext extends StepContext {
  readonly owner: string;
  readonly logger: Logger;
  /** What the worker's batches learn of the provider; without it each batch is judged by itself. */
  readonly provider?: ProviderHealth;
}
