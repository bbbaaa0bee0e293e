import type { Metrics } from '../metrics.ts';
import type { Logger } from '../ports.ts';
import type { Tracing } from '../tracing.ts';
import type { DispatchLedger, QueuePlace, StepQueues } from './dispatch-ports.ts';
import type { Lane } from './lanes.ts';
import type { LedgerGuard } from './ledger-guard.ts';

/** What a dispatcher works with: the ledgers that it reads, and the queues that it fills. */
export interface DispatcherOptions {
  readonly ledger: DispatchLedger;
  readonly queues: StepQueues;
  /** Which kind of server has the queues, as metrics and the state of the dispatcher name it. */
  readonly server: QueuePlace['kind'];
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracing?: Tracing | null | undefined;
  /**
   * Whether this dispatcher always hands rows out to the queues. True in the process of the writer, which marks rows as
   * handed out in commits that it makes anyway. False in a worker: it hands rows out only while no dispatcher with true
   * is running, since each further process that marks rows competes for the write lock.
   */
  readonly leads: boolean;
  /** Finds the id of the tenant that a file belongs to, since hints name files; undefined for a path of no tenant. */
  readonly tenantOf: (path: string) => string | undefined;
}

/** Context that the parts of one dispatcher share. */
export interface DispatchParts extends DispatcherOptions {
  readonly guard: LedgerGuard;
  readonly lanes: readonly Lane[];
  /** Records that the tenant with this id may have ledger rows (jobs) to hand out to the queues, at any step. */
  readonly hint: (tenant: string) => void;
  /** Aborts when the dispatcher closes. */
  readonly signal: AbortSignal;
}
