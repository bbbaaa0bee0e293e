import { countRecovery } from '../metrics.ts';
import { hasLapsedLease, recoverLeases } from '../store/job-leases.ts';
import { forgetScheduleClaims } from '../store/schedules.ts';
import type { MaintenanceContext } from './maintenance-context.ts';

/**
 * Makes claimed jobs due again whose worker let its lease run out; they are claimed as suspects then. A job whose
 * worker died three times while the job ran alone becomes dead. These jobs are counted and logged.
 * @param options.everyOwner releases all claims on jobs and schedules, whatever their leases; only right after a start,
 *   when no other process can have claimed any
 */
export function recoverJobs(context: MaintenanceContext, { everyOwner }: { everyOwner: boolean }): void {
  const { store } = context.open();
  const times = { now: context.clock.now(), leaseMs: context.config.OM_LEASE_MS };
  if (!everyOwner && !hasLapsedLease(store, times)) return; // Nearly every call ends here, without the write lock.
  const recovery = store.write(() => {
    if (everyOwner) forgetScheduleClaims(store);
    return recoverLeases(store, { ...times, everyOwner });
  });
  if (recovery.requeued + recovery.dead === 0) return;
  countRecovery(context.metrics, recovery);
  context.logger.warn({ ...recovery }, 'jobs_recovered');
}
