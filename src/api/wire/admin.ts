/** Translates the previews, backups and activity that administrators see to the field names of the API. */
import type { Activity, ActivityMinute } from '../../activity.ts';
import { type Backups, type BackupSchedule, type Config, type DecayPreview, shownGist } from '../../engine/index.ts';
import type { ActivityItem, BackupsItem, DecayItem } from '../schemas/admin.ts';

export function decayItem(at: number, { sectors, falls, archived, archives, isCut }: DecayPreview): DecayItem {
  return {
    at,
    sectors: sectors.map(({ before, after, ...rest }) => ({
      ...rest,
      before: { average: before.average, tenths: [...before.tenths] },
      after: { average: after.average, tenths: [...after.tenths] },
    })),
    archived,
    archives: archives.map(fallItem),
    falls: falls.map(fallItem),
    degraded: isCut,
  };
}

function fallItem({ memory, before, after }: DecayPreview['falls'][number]) {
  const { id, primarySector: sector } = memory;
  return { id, gist: shownGist(memory), sector, salience_from: before, salience_to: after };
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

export function activityItem({ minutes, providers }: Activity, config: Config): ActivityItem {
  const limits = {
    embedding: { requests_per_minute: config.OM_EMBED_RPM ?? null, tokens_per_minute: config.OM_EMBED_TPM ?? null },
    language_model: { requests_per_minute: config.OM_LLM_RPM ?? null, tokens_per_minute: config.OM_LLM_TPM ?? null },
  };
  return {
    minutes: minutes.map(minuteItem),
    providers: providers.map(({ service, sector, isOpen, heldBack }) => ({
      service,
      sector,
      breaker_open: isOpen,
      ...limits[service],
      held_back: { ...heldBack },
    })),
  };
}

function minuteItem({ at, ms, requests, ...minute }: ActivityMinute): ActivityItem['minutes'][number] {
  const kindItem = ({ count, meanMs }: ActivityMinute['requests']['add']) => ({ count, mean_ms: meanMs });
  return {
    at,
    ms,
    requests: {
      add: kindItem(requests.add),
      query: kindItem(requests.query),
      documents: kindItem(requests.documents),
      read: kindItem(requests.read),
      write: kindItem(requests.write),
    },
    query_p50_ms: minute.queryP50Ms,
    query_p95_ms: minute.queryP95Ms,
    jobs_done: minute.jobsDone,
    jobs_dead: minute.jobsDead,
    tokens: minute.tokens,
    cost_usd: minute.costUsd,
  };
}
