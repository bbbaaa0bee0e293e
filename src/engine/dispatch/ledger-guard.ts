import { serialiseError } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import type { Logger } from '../ports.ts';

/** Keeps a failure of one tenant's ledger from holding up other tenants: it logs the failure and does not throw it. */
export interface LedgerGuard {
  /**
   * Does work on a tenant's ledger.
   * @returns the result; undefined if the work failed, which is counted and logged
   */
  attempt<T>(tenant: string, work: () => Promise<T>): Promise<T | undefined>;
  /** Counts a failure of a tenant's ledger, and logs it unless the attempt before this one failed too. */
  noteFailure(tenant: string, error: unknown): void;
}

/**
 * Creates the guard of one dispatcher, with which work on a tenant's ledger may fail without an error for the caller,
 * so that other tenants go on. Each failure counts in the metric of failed dispatches; of failures in a row of one
 * tenant only the first is logged.
 */
export function createLedgerGuard({ metrics, logger }: { metrics: Metrics; logger: Logger }): LedgerGuard {
  /** Tenants whose ledger failed at the last attempt. Only the first failure is logged, until an attempt succeeds. */
  const unusable = new Set<string>();
  const noteFailure = (tenant: string, error: unknown) => {
    metrics.dispatchFailures.inc();
    if (!unusable.has(tenant)) logger.warn({ code: serialiseError(error).code }, 'ledger_unusable');
    unusable.add(tenant);
  };
  return {
    noteFailure,
    async attempt(tenant, work) {
      try {
        const result = await work();
        unusable.delete(tenant);
        return result;
      } catch (error) {
        noteFailure(tenant, error);
        return undefined;
      }
    },
  };
}
