import { ERASE_SLICE } from '../commands/erase.ts';
import { eraseLogItems } from '../commands/session-logs.ts';
import { DAY_MS } from '../dynamics.ts';
import { removeFailedUploads } from '../steps/remove-uploads.ts';
import { purgeAudit } from '../store/audit-chain.ts';
import { purgeEmbedLogs } from '../store/embeddings.ts';
import { purgeErasures } from '../store/erasures.ts';
import { purgeEvents } from '../store/events.ts';
import { purgeStoredReplies } from '../store/idempotency.ts';
import { purgeJobs } from '../store/job-control.ts';
import type { Store } from '../store/open-store.ts';
import { purgeRecalls, trimRecalls } from '../store/recalls.ts';
import { hasAbandonedLogs, purgeLogOperations } from '../store/session-logs.ts';
import { purgeDeliveries } from '../store/webhooks.ts';
import { type MaintenanceContext, yieldTurn, writeContextOf } from './maintenance-context.ts';

/** Greatest number of rows that one commit purges. */
const PURGE_SLICE = 500;
/**
 * Greatest number of recalls (logged queries) that one commit deletes; few, as each has up to some hundred candidates.
 */
const RECALL_SLICE = 10;
/** Greatest number of receipts of erasures that one commit deletes; few, as each has up to 70 KB of ids and hashes. */
const ERASURE_SLICE = 50;

/**
 * Deletes what was kept for a time that is over: jobs that are done or cancelled, uploads whose reading failed for
 * good, stored replies, the ids of changes of session logs, logs of provider calls and of webhook deliveries, the audit
 * log, receipts of erasures, events and recalls; the oldest events beyond `OM_EVENT_ROWS` and the oldest recalls beyond
 * `OM_RECALL_MB`. Events stay until their deliveries to webhooks were made. It also erases the items of session logs
 * that were cleared or erased.
 */
export async function purgeFinished(context: MaintenanceContext): Promise<void> {
  const { config, clock } = context;
  const before = clock.now() - config.OM_JOB_RETENTION_HOURS * 3_600_000;
  for (const purge of [purgeJobs, purgeStoredReplies, purgeLogOperations, purgeEmbedLogs, purgeDeliveries]) {
    await inSlices(context, (store) => purge(store, before, PURGE_SLICE));
  }
  const daysAgo = (days: number) => clock.now() - days * DAY_MS;
  const lastRecord = daysAgo(config.OM_AUDIT_DAYS);
  await inSlices(context, (store) => purgeAudit(store, lastRecord, PURGE_SLICE));
  await inSlices(context, (store) => purgeErasures(store, lastRecord, ERASURE_SLICE), ERASURE_SLICE);
  const events = { before: daysAgo(config.OM_EVENT_DAYS), rows: config.OM_EVENT_ROWS };
  await inSlices(context, (store) => purgeEvents(store, { ...events, limit: PURGE_SLICE }));
  const lastRecall = daysAgo(config.OM_RECALL_DAYS);
  await inSlices(context, (store) => purgeRecalls(store, lastRecall, RECALL_SLICE), RECALL_SLICE);
  const maxBytes = config.OM_RECALL_MB * 1024 * 1024;
  await inSlices(context, (store) => trimRecalls(store, { maxBytes, limit: RECALL_SLICE }), RECALL_SLICE);
  await eraseAbandonedLogs(context);
  removeFailedUploads(context.open().store, before);
}

/** Repeats a purge, which deletes at most `slice` rows, until it finds fewer. */
async function inSlices(
  context: MaintenanceContext,
  purge: (store: Store) => number,
  slice = PURGE_SLICE,
): Promise<void> {
  for (;;) {
    const { store } = context.open();
    const purged = store.write(() => purge(store));
    if (purged === 0) context.onNote?.();
    if (purged < slice) return;
    await yieldTurn(context);
  }
}

/** Erases the items of cleared and erased logs that remained because a process ended before it had erased them. */
async function eraseAbandonedLogs(context: MaintenanceContext): Promise<void> {
  for (;;) {
    const { store } = context.open();
    if (!hasAbandonedLogs(store)) return;
    store.write(() => eraseLogItems(writeContextOf(context), { limit: ERASE_SLICE }));
    await yieldTurn(context);
  }
}
