/** Translation of previews of decay and of backups to the names of the wire. */
import type { Backups, BackupSchedule, DecayPreview } from '../../engine/index.ts';
import type { BackupsItem, DecayItem } from '../schemas/admin.ts';

export function decayItem(at: number, { sectors, falls, archived, isCut }: DecayPreview): DecayItem {
  return {
    at,
    sectors: sectors.map(({ before, after, ...rest }) => ({
      ...rest,
      before: { average: before.average, tenths: [...before.tenths] },
      after: { average: after.average, tenths: [...after.tenths] },
    })),
    archived,
    falls: falls.map(({ memory, before, after }) => ({
      id: memory.id,
      sector: memory.primarySector,
      salience_from: before,
      salience_to: after,
    })),
    degraded: isCut,
  };
}

export function backupsItem(
  settings: Pick<BackupsItem, 'tenant' | 'every_ms' | 'keep'>,
  backups: Backups | null,
): BackupsItem {
  const { items, total, control, schedule } = backups ?? { items: [], total: 0, control: [], schedule: null };
  return {
    ...settings,
    schedule: schedule && {
      state: stateOf(schedule),
      last_run_at: schedule.lastRunAt,
      failures: schedule.failures,
      failed_at: schedule.failedAt,
    },
    items: [...items],
    total,
    control: [...control],
  };
}

function stateOf({ isRunning, isDue, failures }: BackupSchedule) {
  if (isRunning) return 'running';
  if (isDue) return 'due';
  return failures > 0 ? 'failing' : 'waiting';
}
