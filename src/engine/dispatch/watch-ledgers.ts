import { countRecovery } from '../metrics.ts';
import type { DispatchParts } from './dispatch-parts.ts';
import { addToLanes } from './lanes.ts';

/**
 * Checks regularly for work that no hint named: retries that fell due, marks (of rows handed out) and leases that
 * lapsed, and queues that lost their data.
 */
export interface LedgerWatch {
  /**
   * Runs the check if it is due, else does nothing. If another process fills the queues, the check ends there.
   * @returns whether this dispatcher is to fill the queues until the next check; false if another process does
   * @throws the errors of the queues and of `DispatchLedger.look`; a failure of one tenant's ledger is only noted
   */
  lookIfDue(): Promise<boolean>;
  /** Returns the time until the next check (ms); 0 if it is due. */
  dueInMs(): number;
  /** Makes the next check due at once. */
  lookSoon(): void;
}

/** Time between two checks of the ledgers for work that no hint named (ms). */
const LOOK_EVERY_MS = 500;
/** Time between two checks of the ledgers while ledgers that changed are left to read (ms). */
const LOOK_ON_MS = 100;

/**
 * Creates the watch of one dispatcher. Its first check is due at once. The next one is due half a second after a check,
 * or 100 ms after a check that left changed ledgers to read.
 */
export function createLedgerWatch(parts: DispatchParts): LedgerWatch {
  const { ledger, queues, guard, lanes, metrics, logger, leads, hint, signal } = parts;
  let lookAt = 0;
  let fills = false;
  let areMaintained = true;
  /**
   * True from the call in which the queues said that they lost their data, which they say only once, until all rows are
   * handed out again. It stays true if handing out fails, so that the next check tries again.
   */
  let haveForgotten = false;

  return {
    async lookIfDue() {
      if (performance.now() >= lookAt) await look();
      return fills;
    },
    dueInMs: () => Math.max(0, lookAt - performance.now()),
    lookSoon: () => void (lookAt = 0),
  };

  async function look(): Promise<void> {
    fills = leads || !(await queues.haveLeader());
    lookAt = performance.now() + LOOK_EVERY_MS;
    if (!fills) return;
    if (leads) await queues.lead();
    if (await queues.haveForgotten()) haveForgotten = true;
    if (haveForgotten) await handOutAgain();
    haveForgotten = false;
    await warnIfNobodyMaintains();
    const { statuses, failures, isComplete } = await ledger.look();
    for (const { tenant, error } of failures) guard.noteFailure(tenant, error);
    for (const { tenant, hasLapsed, ...due } of statuses) {
      addToLanes(lanes, tenant, due);
      if (hasLapsed) await guard.attempt(tenant, () => recover(tenant));
    }
    lookAt = performance.now() + (isComplete ? LOOK_EVERY_MS : LOOK_ON_MS);
  }

  async function handOutAgain(): Promise<void> {
    let rows = 0;
    for (const tenant of await ledger.listUnfinished(signal)) {
      if (signal.aborted) return;
      rows += (await guard.attempt(tenant, () => ledger.forget(tenant))) ?? 0;
      hint(tenant);
    }
    metrics.queueRefills.inc();
    metrics.refilledRows.inc(rows);
    if (rows > 0) logger.warn({ rows }, 'queues_refilled');
  }

  async function recover(tenant: string): Promise<void> {
    const { requeued, dead } = await ledger.recover(tenant);
    if (requeued + dead === 0) return;
    countRecovery(metrics, { requeued, dead });
    logger.warn({ requeued, dead }, 'jobs_recovered');
    hint(tenant);
  }

  async function warnIfNobodyMaintains(): Promise<void> {
    const were = areMaintained;
    areMaintained = await queues.areMaintained();
    if (were && !areMaintained) logger.warn({ queue: 'maintain' }, 'queue_without_worker');
  }
}
