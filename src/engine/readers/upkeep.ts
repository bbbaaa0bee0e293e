import { previewDecay } from '../admin/preview-decay.ts';
import { listScheduledBackups } from '../admin/scheduled-backups.ts';
import { tenantOf } from '../control/data-keys.ts';
import { assert } from '../errors.ts';
import { scheduleState } from '../store/schedules.ts';
import { createWorkBudget, runWithin } from '../store/work-budget.ts';
import { type Backups, type DecayAssumptions, type DecayPreview, type Page, SECTORS } from '../types.ts';
import type { ReadContext } from './read-context.ts';
import { workLimits } from './work-limits.ts';

/**
 * Computes how memories will have decayed at a later date. Each assumption that is left out is taken from the settings.
 */
export function previewDecayAt({ open, clock, config }: ReadContext, assumed: DecayAssumptions): DecayPreview {
  const { OM_DECAY_LAMBDA: set, OM_ARCHIVE_BELOW } = config;
  const { at, lambda = set, archiveBelow = OM_ARCHIVE_BELOW } = assumed;
  const rates =
    typeof lambda === 'object' ? Object.fromEntries(SECTORS.map((sector) => [sector, lambda[sector] ?? set])) : lambda;
  const { store } = open();
  return runWithin(createWorkBudget(workLimits(config)), () =>
    previewDecay(store, { now: clock.now(), at, lambda: rates, archiveBelow }),
  );
}

/** Lists a tenant's scheduled backups, with the state of their schedule; null if `OM_BACKUP_EVERY` is not set. */
export function readBackups({ open, clock, config }: ReadContext, page: Page): Backups | null {
  const { OM_BACKUP_EVERY: everyMs, OM_LEASE_MS: leaseMs, paths } = config;
  if (everyMs === undefined) return null;
  const { store } = open();
  const tenant = tenantOf(paths, store.path);
  assert(tenant !== undefined, 'the path of a tenant');
  const schedule = { name: 'backup', everyMs, waitsAPeriod: false, backsOff: true };
  const state = store.read(() => scheduleState(store, schedule, { now: clock.now(), leaseMs }));
  return { ...listScheduledBackups(config, tenant, page), schedule: state };
}
