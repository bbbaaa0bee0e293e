import { ERASE_PENDING } from '../commands/erase.ts';
import { hasActiveJob } from '../store/job-leases.ts';
import { claimableFrom, prefetchSchedules } from '../store/schedules.ts';
import { hasInfo } from '../store/store-info.ts';
import type { MaintenanceContext } from './maintenance-context.ts';
import { type ScheduleLook, schedules } from './schedules.ts';

/** When a tenant in PostgreSQL needs a look next, if nothing is written to it before. */
export interface NextLook {
  /** Value of the tenant's counter of writes for which this holds; a later write outdates it. */
  readonly writes: number;
  /** Time from which on something is due if nothing is written before, Unix ms. */
  readonly dueAt: number;
  /** Times (Unix ms) by the name of a schedule until which it rests: the `rests` of the next `ScheduleLook`. */
  readonly rests: Readonly<Record<string, number>>;
}

/**
 * Finds out when a tenant in PostgreSQL needs a look next, in one round trip. A schedule that ran rests if nothing but
 * notes was written since the look began, by whomever: then it has found nothing to do, nor would it the next time.
 * @param writesBefore the tenant's counter of writes when the look began
 * @returns null if somebody has to look every second, as a worker has claimed a job, or deleted text is to be erased
 */
export function findNextLook(
  { open, config, clock }: MaintenanceContext,
  look: ScheduleLook,
  writesBefore: number,
): NextLook | null {
  const { store } = open();
  const all = schedules(config);
  const now = clock.now();
  const times = { now, leaseMs: config.OM_LEASE_MS };
  const found = store.read(() => {
    prefetchSchedules(store, all);
    store.ahead?.readSpeculatively(
      () => hasActiveJob(store),
      () => hasInfo(store, ERASE_PENDING),
      ...all.map((schedule) => () => schedule.firstWorkAt?.(store, now)),
    );
    if (hasActiveJob(store) || hasInfo(store, ERASE_PENDING)) return null;
    return all.map((schedule) => ({
      ...schedule,
      claimableAt: claimableFrom(store, schedule, times),
      workAt: schedule.firstWorkAt?.(store, now) ?? Infinity,
    }));
  });
  if (found === null) return null;
  const writes = store.position;
  const hasFoundNothing = writes - writesBefore === look.notes;
  const rests: Record<string, number> = {};
  for (const { name, restMs = 0, workAt } of hasFoundNothing ? found : []) {
    const ranAt = look.ran.get(name);
    // The clock may have been set back since the look began.
    const until = Math.min(ranAt === undefined ? (look.rests[name] ?? 0) : ranAt + restMs, workAt, now + restMs);
    if (until > now) rests[name] = until;
  }
  const dueAt = Math.min(...found.map(({ name, claimableAt }) => Math.max(claimableAt, rests[name] ?? 0)));
  return { writes, dueAt, rests };
}
