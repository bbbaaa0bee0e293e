import type { Metrics } from '../metrics.ts';
import type { Logger } from '../ports.ts';
import type { Tracing } from '../tracing.ts';
import type { DispatchLedger, StepQueues } from './dispatch-ports.ts';
import type { Lane } from './lanes.ts';
import type { LedgerGuard } from './ledger-guard.ts';

export interface DispatcherOptions {
  readonly ledger: DispatchLedger;
  readonly queues: StepQueues;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracing?: Tracing | null | undefined;
  /**
   * True beside the writer of an API, which marks rows in commits that it makes anyway. Others stand by while there is
   * a leader: each that fills the queues is one more that wants the write lock.
   */
  readonly leads: boolean;
  /** Finds the tenant of a file, as hints name files. */
  readonly tenantOf: (path: string) => string | undefined;
}

/** What the parts of one dispatcher share. */
export interface DispatchParts extends DispatcherOptions {
  readonly guard: LedgerGuard;
  readonly lanes: readonly Lane[];
  /** Says that a tenant may have rows to hand out at any step. */
  readonly hint: (tenant: string) => void;
  /** Aborts when the dispatcher closes. */
  readonly signal: AbortSignal;
}
